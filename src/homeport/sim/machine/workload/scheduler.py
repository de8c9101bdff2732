"""Which node a Pod runs on: the one with the fewest Pods among those that take it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from homeport.sim.machine.workload.kind import POD, Json
from homeport.sim.machine.workload.view import View, finished, leaving


async def settle_schedule(view: View) -> None:
    load = Counter(pod["spec"]["nodeName"] for pod in view.pods if pod["spec"].get("nodeName") and not finished(pod))
    for pod in view.pods:
        spec = pod["spec"]
        if spec.get("nodeName") or leaving(pod) or finished(pod) or spec.get("schedulingGates"):
            continue
        fitting = [name for name, node in view.nodes.items() if fits(pod, node)]
        if fitting:
            chosen = min(fitting, key=lambda name: (load[name], name))
            load[chosen] += 1
            await view.bind(pod, chosen)
        else:
            await _say_unschedulable(view, pod)


def fits(pod: Json, node: Json) -> bool:
    spec, at = pod["spec"], node.get("spec") or {}
    if leaving(node) or at.get("unschedulable"):
        return False
    labels = node["metadata"].get("labels") or {}
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    return tolerates(spec.get("tolerations") or (), at.get("taints") or ())


def tolerates(tolerations: Sequence[Json], taints: Iterable[Json]) -> bool:
    """Whether all taints that keep Pods away are tolerated."""
    return all(
        taint["effect"] == "PreferNoSchedule" or any(_tolerates(each, taint) for each in tolerations)
        for taint in taints
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if not toleration.get("key"):
        return bool(toleration.get("operator") == "Exists")
    if toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


async def _say_unschedulable(view: View, pod: Json) -> None:
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions):
        return
    message = f"0/{len(view.nodes)} nodes are available."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    condition["lastTransitionTime"] = view.stamp
    kept = [each for each in conditions if each["type"] != "PodScheduled"]
    await view.set_status(POD, pod, {"conditions": [*kept, condition]})
