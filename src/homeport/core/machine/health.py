"""How a Machine's Node is: NodeReady and NodeHealthy. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Unstructured
from homeport.capi.name import CONTROL_PLANE_LABEL, Condition, Reason
from homeport.capi.object.joined import controller_of_cluster
from homeport.core.machine.observed import Observed
from homeport.core.verdict import Verdict
from homeport.machinery import condition
from homeport.runtime.clock import parse_time, rfc3339

GRACE_SECONDS = 300.0  # how long the last news of a Node count when the connection is lost
_READY = "Ready"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node_conditions(machine: Machine, seen: Observed, now: float) -> tuple[Verdict, Verdict] | None:
    """(NodeReady, NodeHealthy). None: there is no news, and what was said last still counts."""
    if seen.node is not None:
        return node_ready(seen.node), node_healthy(seen.node)
    both = _without_node(machine, seen, now)
    return None if both is None else (both, both)


def _without_node(machine: Machine, seen: Observed, now: float) -> Verdict | None:
    cluster = seen.cluster
    if cluster is None:
        return Verdict("Unknown", Reason.INSPECTION_FAILED, f"Cluster {machine.spec.cluster_name} does not exist")
    if not cluster.status.initialization.infrastructure_provisioned:
        text = f"Cluster {cluster.metadata.name}: its infrastructure is not provisioned yet"
        return Verdict("Unknown", Reason.INSPECTION_FAILED, text)
    if not (cluster.status.initialization.control_plane_initialized or seen.connection.up or _was_inspected(machine)):
        return Verdict("Unknown", Reason.INSPECTION_FAILED, _early(machine, cluster.metadata.name))
    if not seen.connection.up:
        return _unconnected(machine, seen, now)
    if seen.node_trouble:
        return Verdict("Unknown", Reason.INTERNAL_ERROR, seen.node_trouble)
    return _absent(machine)


def _early(machine: Machine, cluster: str) -> str:
    """Workers wait for the control plane; what it waits for is its own first machine."""
    started = machine.status.initialization.infrastructure_provisioned
    if started and CONTROL_PLANE_LABEL in machine.metadata.labels and not machine.metadata.deletion_timestamp:
        look = f"homeport console {machine.metadata.name} -n {machine.metadata.namespace}"
        text = "the machine was started, but Kubernetes on it does not answer yet: if this lasts, look at its console"
        return f"{text} with '{look}'"
    return f"Cluster {cluster}: its control plane is not initialized yet"


def _unconnected(machine: Machine, seen: Observed, now: float) -> Verdict | None:
    """What was last known stays for a while: most connections come back."""
    last = seen.connection.last_probe
    since = max(now if seen.connection.since is None else seen.connection.since, _initialized_at(seen))
    if _was_inspected(machine) and now - since <= GRACE_SECONDS:
        return None
    text = seen.connection.why or "no connection to the workload cluster"
    if last is not None:
        text = f"{text}; it last answered at {rfc3339(last)}"
    return Verdict("Unknown", Reason.CONNECTION_DOWN, text)


def _was_inspected(machine: Machine) -> bool:
    known = condition.find(machine.status.conditions, Condition.NODE_HEALTHY)
    return known is not None and known["reason"] != Reason.INSPECTION_FAILED


def _initialized_at(seen: Observed) -> float:
    assert seen.cluster is not None
    found = condition.find(seen.cluster.status.conditions, Condition.CONTROL_PLANE_INITIALIZED)
    return parse_time(found["lastTransitionTime"]) if found is not None and found["status"] == "True" else 0.0


def _absent(machine: Machine) -> Verdict:
    ref = machine.status.node_ref
    if ref is not None:
        while_ = "" if machine.metadata.deletion_timestamp else ", but the Machine still exists"
        return Verdict("False", Reason.NODE_DELETED, f"Node {ref.name} has been deleted{while_}")
    if machine.metadata.deletion_timestamp:
        return Verdict("Unknown", Reason.NODE_DOES_NOT_EXIST, "the Node does not exist")
    controller = controller_of_cluster(machine.status.conditions)
    if controller is not None:
        return Verdict(controller["status"], controller["reason"], controller.get("message") or "")
    if machine.spec.provider_id:
        text = f"waiting for a Node with spec.providerID {machine.spec.provider_id}: the machine has not joined yet"
        return Verdict("Unknown", Reason.INSPECTION_FAILED, text)
    kind = machine.spec.infrastructure_ref.kind if machine.spec.infrastructure_ref else "the infrastructure"
    return Verdict("Unknown", Reason.INSPECTION_FAILED, f"waiting for {kind} to report spec.providerID")


def node_ready(node: Unstructured) -> Verdict:
    found = _found(node, _READY)
    if found is None:
        return Verdict("Unknown", Reason.NODE_READY_UNKNOWN, f"Node {node.name} has not reported Ready yet")
    if found["status"] == "True":
        return Verdict("True", Reason.NODE_READY)
    text = f"Node {node.name}: {found.get('message') or 'no reason given'}"
    if found["status"] == "False":
        return Verdict("False", Reason.NODE_NOT_READY, text)
    return Verdict("Unknown", Reason.NODE_READY_UNKNOWN, text)


def node_healthy(node: Unstructured) -> Verdict:
    """Ready, and under no pressure. What is wrong comes by type; equal texts are said once."""
    wrong: dict[str, list[str]] = {}
    statuses = set()
    for kind in (_READY, *_PRESSURES):
        found = _found(node, kind)
        good = "True" if kind == _READY else "False"
        status = "Unknown" if found is None else str(found["status"])
        if status == good:
            continue
        statuses.add(status)
        text = "not reported yet" if found is None else found.get("message") or f"is {status}"
        wrong.setdefault(text, []).append(kind)
    if not wrong:
        return Verdict("True", Reason.NODE_HEALTHY)
    message = f"Node {node.name}: " + "; ".join(f"{', '.join(kinds)}: {text}" for text, kinds in wrong.items())
    if statuses == {"Unknown"}:
        return Verdict("Unknown", Reason.NODE_HEALTH_UNKNOWN, message)
    return Verdict("False", Reason.NODE_NOT_HEALTHY, message)


def _found(node: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    return condition.find((node.get("status") or {}).get("conditions"), kind)
