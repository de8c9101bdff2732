"""The life of Pods on their nodes: they run, they end when asked to, and they vanish with their node."""

from __future__ import annotations

import hashlib

from homeport.runtime.clock import parse_time
from homeport.runtime.workload.kind import JOB
from homeport.sim.machine.workload.kind import POD, Json
from homeport.sim.machine.workload.node import NO_NETWORK
from homeport.sim.machine.workload.standin.mark import NO_PROGRAM, SHOWN, simulated_condition
from homeport.sim.machine.workload.storage.volume import awaits_volumes
from homeport.sim.machine.workload.view import View, finished, leaving

_EVICT_SECONDS = 300.0
_JOB_SECONDS = 2.0
_PULL_SECONDS = 60.0


async def settle_pods(view: View) -> None:
    for pod in view.pods:
        node = pod["spec"].get("nodeName")
        if not node:
            if leaving(pod):
                await view.delete(POD, pod, grace_seconds=0)
        elif node not in view.nodes:
            await view.delete(POD, pod, grace_seconds=0)  # no kubelet is left to stop it
        elif view.alive(node):
            await _run(view, pod, view.nodes[node])
        elif not leaving(pod):
            await _evict_lost(view, pod, view.nodes[node])


async def _run(view: View, pod: Json, node: Json) -> None:
    if leaving(pod):
        if not view.busy(pod):
            await view.delete(POD, pod, grace_seconds=0)
        return
    status = pod.get("status") or {}
    if finished(pod):
        return
    if status.get("phase") == "Running" and status.get("podIP"):
        if any(ref["kind"] == JOB.kind for ref in pod["metadata"].get("ownerReferences") or ()):
            await _complete(view, pod)
        else:
            await _probe(view, pod)
        return
    if (not pod["spec"].get("hostNetwork") and _without_network(node)) or awaits_volumes(view, pod):
        await _wait(view, pod, {})
        return
    problems = {
        each["name"]: problem
        for each in pod["spec"]["containers"]
        if (problem := view.pull_problem(node["metadata"]["name"], str(each.get("image") or "")))
    }
    if problems:
        await _wait(view, pod, problems)
        view.later(_PULL_SECONDS)
        return
    await view.set_status(POD, pod, _running(view, pod, node))


def _running(view: View, pod: Json, node: Json) -> Json:
    """The status of a Pod whose containers have started."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    host = next((each["address"] for each in addresses if each["type"] == "InternalIP"), "")
    address = host if pod["spec"].get("hostNetwork") else _pod_address(pod)
    mark = simulated_condition(pod, view.has_program, view.stamp)
    return {
        "phase": "Running",
        **(SHOWN if mark["reason"] == NO_PROGRAM else {}),
        "hostIP": host,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": view.stamp,
        "conditions": [
            {"type": "Initialized", "status": "True", "lastTransitionTime": view.stamp},
            *_readiness(view, pod),
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": view.stamp},
            mark,
        ],
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each.get("image", ""),
                "imageID": "",
                "ready": not view.unready(pod, each),
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": view.stamp}},
            }
            for each in pod["spec"]["containers"]
        ],
    }


def _readiness(view: View, pod: Json) -> list[Json]:
    failing = [each["name"] for each in pod["spec"]["containers"] if view.unready(pod, each)]
    made: Json = {"status": "True", "lastTransitionTime": view.stamp}
    if failing:
        text = f"containers with unready status: [{' '.join(failing)}]"
        made = {**made, "status": "False", "reason": "ContainersNotReady", "message": text}
    return [{"type": kind, **made} for kind in ("Ready", "ContainersReady")]


async def _probe(view: View, pod: Json) -> None:
    """Readiness follows what programs report."""
    failing = {each["name"]: view.unready(pod, each) for each in pod["spec"]["containers"]}
    states = pod["status"].get("containerStatuses") or ()
    if all(each["ready"] != failing.get(each["name"]) for each in states):
        return
    kept = [each for each in pod["status"]["conditions"] if each["type"] not in ("Ready", "ContainersReady")]
    changed = [{**each, "ready": not failing.get(each["name"])} for each in states]
    status = {"conditions": [*kept, *_readiness(view, pod)], "containerStatuses": changed}
    await view.set_status(POD, pod, status)


async def _complete(view: View, pod: Json) -> None:
    """A Pod of a Job ends well after a while. A container with a program of its own ends with that."""
    status = pod["status"]
    left = parse_time(status["startTime"]) + _JOB_SECONDS - view.now
    if left > 0:
        view.later(left + 0.1)
    if left > 0 or view.busy(pod):
        return
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": status["startTime"], "finishedAt": view.stamp}
    states = [{**each, "ready": False, "state": {"terminated": ended}} for each in status["containerStatuses"]]
    conditions = [
        {**each, "status": "False", "reason": "PodCompleted", "lastTransitionTime": view.stamp}
        if each["type"] in ("Ready", "ContainersReady")
        else each
        for each in status["conditions"]
    ]
    await view.set_status(POD, pod, {"phase": "Succeeded", "containerStatuses": states, "conditions": conditions})


def _without_network(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each.get("message") == NO_NETWORK for each in conditions)


async def _wait(view: View, pod: Json, problems: dict[str, str]) -> None:
    """A change of its node, or of what it mounts, brings us back. `problems`: of pulling images, by container."""
    status: Json = {
        "phase": "Pending",
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each.get("image", ""),
                "imageID": "",
                "ready": False,
                "started": False,
                "restartCount": 0,
                "state": {"waiting": _waiting(each, problems.get(each["name"], ""))},
            }
            for each in pod["spec"]["containers"]
        ],
    }
    await view.set_status(POD, pod, status)


def _waiting(container: Json, problem: str) -> Json:
    if not problem:
        return {"reason": "ContainerCreating"}
    text = f'Back-off pulling image "{container.get("image", "")}": ErrImagePull: {problem}'
    return {"reason": "ImagePullBackOff", "message": text}


def _pod_address(pod: Json) -> str:
    digest = hashlib.sha256(pod["metadata"]["uid"].encode()).digest()
    return f"10.244.{digest[0]}.{max(digest[1], 1)}"


async def _evict_lost(view: View, pod: Json, node: Json) -> None:
    """Pods leave a node that has been lost for as long as they tolerate it."""
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint["effect"] != "NoExecute" or not taint.get("timeAdded"):
            continue
        tolerated = _tolerated_seconds(pod, taint)
        if tolerated is None:
            continue
        left = parse_time(taint["timeAdded"]) + tolerated - view.now
        if left <= 0:
            await view.delete(POD, pod)
            return
        view.later(left + 0.1)


def _tolerated_seconds(pod: Json, taint: Json) -> float | None:
    """None: for ever."""
    for each in pod["spec"].get("tolerations") or ():
        if each.get("effect") in (None, "", "NoExecute") and each.get("key") in (None, "", taint["key"]):
            seconds = each.get("tolerationSeconds")
            return None if seconds is None else float(seconds)
    return _EVICT_SECONDS
