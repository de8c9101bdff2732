"""Which node a Pod runs on: the one with the fewest Pods among those that take it and have room for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from homeport.client.protocol import Key
from homeport.sim.machine.workload.kind import CLAIM, POD, Json
from homeport.sim.machine.workload.pod.load import Load
from homeport.sim.machine.workload.storage.claim import SELECTED_NODE, claim_names, is_bound, waits_for_consumer
from homeport.sim.machine.workload.view import View, finished, leaving


async def settle_schedule(view: View) -> None:
    waiting = [pod for pod in view.pods if _waits(pod)]
    if not waiting:
        return
    loads = {name: Load.of(node) for name, node in view.nodes.items()}
    for pod in view.pods:
        name = pod["spec"].get("nodeName")
        if name in loads and not finished(pod):
            loads[name].take(pod)
    for pod in waiting:
        unbound = _unbound_claims(view, pod)
        if isinstance(unbound, str):
            await _report_unschedulable(view, pod, unbound)
            continue
        refused = {name: why_not(pod, node, loads[name]) for name, node in view.nodes.items()}
        fitting = [name for name, why in refused.items() if not why]
        if fitting:
            given = _node_of_volumes(view, pod)
            chosen = given if given in fitting else min(fitting, key=lambda name: (loads[name].pods, name))
            loads[chosen].take(pod)
            if unbound:  # their volumes are made where the Pod is going to run, and it waits for them
                for claim in unbound:
                    await view.patch(CLAIM, claim, {"metadata": {"annotations": {SELECTED_NODE: chosen}}})
            else:
                await view.bind(pod, chosen)
        else:
            await _say_unschedulable(view, pod, refused.values())


def _unbound_claims(view: View, pod: Json) -> list[Json] | str:
    """Claims whose volume waits for a node; or why the Pod can't have one yet."""
    waiting = []
    for claim in _claims(view, pod):
        if isinstance(claim, str):
            return f'persistentvolumeclaim "{claim}" not found'
        if is_bound(claim):
            continue
        if not waits_for_consumer(view, claim):
            return "pod has unbound immediate PersistentVolumeClaims"
        waiting.append(claim)
    return waiting


def _node_of_volumes(view: View, pod: Json) -> str:
    """The node that was chosen while the Pod's volumes were not there yet."""
    for claim in _claims(view, pod):
        if not isinstance(claim, str) and (node := (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)):
            return str(node)
    return ""


def _claims(view: View, pod: Json) -> list[Json | str]:
    """The Pod's claims; of those that don't exist, the names."""
    names = claim_names(pod)
    if names:
        view.all(CLAIM)
    return [view.find(CLAIM, Key(pod["metadata"]["namespace"], name)) or name for name in names]


def _waits(pod: Json) -> bool:
    spec = pod["spec"]
    return not (spec.get("nodeName") or leaving(pod) or finished(pod) or spec.get("schedulingGates"))


def why_not(pod: Json, node: Json, load: Load) -> str:
    """Why the node does not take the Pod, as kube-scheduler counts it; '' if it does."""
    spec, at = pod["spec"], node.get("spec") or {}
    if leaving(node) or at.get("unschedulable"):
        return "node(s) were unschedulable"
    labels = node["metadata"].get("labels") or {}
    if not (spec.get("nodeSelector") or {}).items() <= labels.items() or not _attracted(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    if not tolerates(spec.get("tolerations") or (), at.get("taints") or ()):
        return "node(s) had untolerated taint(s)"
    return load.lacks(pod)


def _attracted(spec: Json, node: Json) -> bool:
    """By the affinity that is required; of its terms one has to hold."""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if affinity is None:
        return True
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        all(_holds(each, labels) for each in term.get("matchExpressions") or ())
        and all(_holds(each, fields) for each in term.get("matchFields") or ())
        for term in affinity.get("nodeSelectorTerms") or ()
        if term
    )


def _holds(asked: Json, values: Mapping[str, str]) -> bool:
    value, wanted = values.get(asked["key"]), asked.get("values") or []
    match asked["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as order if value is not None and value.lstrip("-").isdigit():
            return int(value) > int(wanted[0]) if order == "Gt" else int(value) < int(wanted[0])
    return False


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


async def _say_unschedulable(view: View, pod: Json, refused: Iterable[str]) -> None:
    counted = sorted(f"{count} {why}" for why, count in Counter(refused).items())
    await _report_unschedulable(view, pod, ", ".join(counted))


async def _report_unschedulable(view: View, pod: Json, why: str) -> None:
    conditions = (pod.get("status") or {}).get("conditions") or []
    message = f"0/{len(view.nodes)} nodes are available" + (f": {why}." if why else ".")
    before: Json = next((each for each in conditions if each["type"] == "PodScheduled"), {})
    if before.get("status") == "False" and before.get("message") == message:
        return
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    condition["lastTransitionTime"] = view.stamp if before.get("status") != "False" else before["lastTransitionTime"]
    kept = [each for each in conditions if each["type"] != "PodScheduled"]
    await view.set_status(POD, pod, {"conditions": [*kept, condition]})
