"""A Cluster's status, computed from what one loop has seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi import contract
from homeport.capi.name import POOL_NAME_LABEL, Condition, Reason
from homeport.capi.object import summary
from homeport.capi.object.cause import causes, described
from homeport.capi.object.ownership import controller_of
from homeport.core.cluster import replicas
from homeport.core.cluster.network import network_plugin
from homeport.core.cluster.observed import Observed, to_be_remediated, unhealthy
from homeport.core.related import Related
from homeport.core.verdict import Verdict, deletion_verdict, mirrored, put_verdict
from homeport.machinery import condition
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait

GRACE_SECONDS = 50.0  # how long a workload cluster may be silent before that is told
_YOUNG_SECONDS = 10.0  # Machines that were made just now have not been compared with what is wanted yet
_GATES = (
    Condition.DELETING,
    Condition.REMOTE_CONNECTION_PROBE,
    Condition.INFRASTRUCTURE_READY,
    Condition.CONTROL_PLANE_AVAILABLE,
    Condition.WORKERS_AVAILABLE,
    Condition.TOPOLOGY_RECONCILED,
)
_REPEATED = (Condition.INFRASTRUCTURE_REACHABLE, Condition.NO_ORPHANED_MACHINES)
# Mistakes that hold up nothing: the user looks at the Cluster, so it repeats them while they are there.
_WARNED = (Condition.NETWORKS_DISJOINT, Condition.CONTROL_PLANE_ENDPOINT_FREE)
_GONE = (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST)
_TOPOLOGY_ISSUES = (Reason.RECONCILE_FAILED, Reason.CLUSTER_CLASS_NOT_RECONCILED)
_SHOWN = 3


def report(cluster: Cluster, seen: Observed, now: float) -> Wait | None:
    """Writes the whole status. Gives a timer where it will change by the passing of time."""
    cluster.status.deprecated.v1beta1.conditions = []  # others wrote them, whose cluster we look after now
    found = seen.descendants
    initialized = control_plane_initialized(cluster, seen)
    if initialized.status == "True":
        cluster.status.initialization.control_plane_initialized = True
    cluster.status.control_plane = replicas.control_plane(cluster, seen.control_plane, found.control_plane)
    cluster.status.workers = replicas.workers(cluster, found)
    for kind, verdict in _verdicts(cluster, seen, initialized, now).items():
        put_verdict(cluster, kind, verdict, now)
    for kind in _REPEATED:
        _repeat(cluster, seen.infrastructure, kind, now)
    for kind in _WARNED:
        _warn(cluster, seen.infrastructure, kind, now)
    missing, seconds = network_plugin(cluster, found.machines, now)
    if missing is None:
        cluster.status.conditions = condition.drop(cluster.status.conditions, Condition.NETWORK_PLUGIN_READY)
    else:
        put_verdict(cluster, Condition.NETWORK_PLUGIN_READY, missing, now)
    put_verdict(cluster, Condition.AVAILABLE, available(cluster, seen), now)
    cluster.status.conditions = summary.ordered(cluster.status.conditions)
    cluster.status.phase = phase(cluster)
    if seen.trouble is None:
        cluster.status.observed_generation = cluster.metadata.generation
    return _timer([*found.control_plane, *found.plain_workers], now, seconds)


def _verdicts(cluster: Cluster, seen: Observed, initialized: Verdict, now: float) -> dict[str, Verdict]:
    found = seen.descendants
    control_plane, workers = found.control_plane, found.plain_workers
    return {
        Condition.REMOTE_CONNECTION_PROBE: remote_connection_probe(cluster, seen, now),
        Condition.INFRASTRUCTURE_READY: infrastructure_ready(cluster, seen),
        Condition.CONTROL_PLANE_INITIALIZED: initialized,
        Condition.CONTROL_PLANE_AVAILABLE: control_plane_available(cluster, seen),
        Condition.CONTROL_PLANE_MACHINES_READY: machines(control_plane, Condition.READY, summary.READY),
        Condition.CONTROL_PLANE_MACHINES_UP_TO_DATE: machines(
            _grown(control_plane, now), Condition.UP_TO_DATE, summary.UP_TO_DATE
        ),
        Condition.WORKERS_AVAILABLE: workers_available(seen),
        Condition.WORKER_MACHINES_READY: machines(workers, Condition.READY, summary.READY),
        Condition.WORKER_MACHINES_UP_TO_DATE: machines(_grown(workers, now), Condition.UP_TO_DATE, summary.UP_TO_DATE),
        Condition.ROLLING_OUT: going_on(seen, Condition.ROLLING_OUT, "RollingOut"),
        Condition.SCALING_UP: going_on(seen, Condition.SCALING_UP, "ScalingUp", sets=True),
        Condition.SCALING_DOWN: going_on(seen, Condition.SCALING_DOWN, "ScalingDown", sets=True),
        Condition.REMEDIATING: remediating(found.machines),
        Condition.DELETING: deletion_verdict(cluster, seen),
        Condition.PAUSED: Verdict("False", Reason.NOT_PAUSED),
    }


def _repeat(cluster: Cluster, related: Related, kind: str, now: float) -> None:
    """What concerns the management of a cluster, and not whether it works: from the object that says it."""
    said = contract.infra_cluster.condition(related.object, kind) if related.object is not None else None
    if said is None:
        cluster.status.conditions = condition.drop(cluster.status.conditions, kind)
    else:
        put_verdict(cluster, kind, mirrored(said, related, fallback=True, waiting=""), now)


def _warn(cluster: Cluster, related: Related, kind: str, now: float) -> None:
    """Where the infrastructure is ready in spite of it: otherwise InfrastructureReady says it."""
    said = contract.infra_cluster.condition(related.object, kind) if related.object is not None else None
    ready = condition.is_true(cluster.status.conditions, Condition.INFRASTRUCTURE_READY)
    if said is None or said["status"] != "False" or not ready:
        cluster.status.conditions = condition.drop(cluster.status.conditions, kind)
    else:
        put_verdict(cluster, kind, mirrored(said, related, fallback=True, waiting=""), now)


# -- its two references ----------------------------------------------------------------------------------------------


def infrastructure_ready(cluster: Cluster, seen: Observed) -> Verdict:
    related = seen.infrastructure
    provisioned = bool(cluster.status.initialization.infrastructure_provisioned)
    if related.ref is None:
        if cluster.spec.topology.class_ref is not None:
            return _no_topology_yet(cluster, "False")
        return Verdict("True", Reason.READY, "it has no infrastructure")
    if seen.refused is not None and seen.refused.source is related:
        return Verdict("False", Reason.ENDPOINT_NOT_USABLE, seen.refused.message)
    if related.object is not None:
        said = contract.infra_cluster.ready(related.object, related.contract)
        return mirrored(said, related, fallback=provisioned, waiting="is not provisioned yet")
    return _absent(cluster, related, existed=provisioned)


def control_plane_available(cluster: Cluster, seen: Observed) -> Verdict:
    related = seen.control_plane
    known = bool(cluster.status.initialization.control_plane_initialized)
    reasons = (Reason.AVAILABLE, Reason.NOT_AVAILABLE)
    if related.ref is None:
        if cluster.spec.topology.class_ref is not None:
            return _no_topology_yet(cluster, "False")
        if known:
            return Verdict("True", Reason.AVAILABLE)
        return Verdict("False", Reason.NOT_AVAILABLE, "no control plane machine has a Node yet")
    if seen.refused is not None and seen.refused.source is related:
        return Verdict("False", Reason.ENDPOINT_NOT_USABLE, seen.refused.message)
    if related.object is not None:
        said = contract.control_plane.available(related.object, related.contract)
        return mirrored(said, related, fallback=known, waiting="is not initialized yet", reasons=reasons)
    return _absent(cluster, related, existed=known)


def control_plane_initialized(cluster: Cluster, seen: Observed) -> Verdict:
    """Once it is, it stays."""
    related = seen.control_plane
    if cluster.status.initialization.control_plane_initialized:
        return Verdict("True", Reason.INITIALIZED)
    if related.ref is None:
        if cluster.spec.topology.class_ref is not None:
            return _no_topology_yet(cluster, "Unknown")
        if any(m.status.node_ref is not None for m in seen.descendants.control_plane):
            return Verdict("True", Reason.INITIALIZED)
        return Verdict("False", Reason.NOT_INITIALIZED, "no control plane machine has a Node yet")
    if related.trouble:
        return _unusable(related)
    if related.object is None:
        return Verdict("Unknown", Reason.OBJECT_DOES_NOT_EXIST, f"{related} does not exist")
    if contract.control_plane.initialized(related.object, related.contract):
        return Verdict("True", Reason.INITIALIZED)
    return Verdict("False", Reason.NOT_INITIALIZED, f"{related} is not initialized yet")


def _no_topology_yet(cluster: Cluster, status: condition.Status) -> Verdict:
    text = "" if cluster.metadata.deletion_timestamp else "waiting for the cluster topology to be reconciled"
    return Verdict(status, Reason.OBJECT_DOES_NOT_EXIST, text)


def _unusable(related: Related) -> Verdict:
    return Verdict("False" if related.foreign else "Unknown", related.reason, related.trouble)


def _absent(cluster: Cluster, related: Related, *, existed: bool) -> Verdict:
    if related.trouble:
        return _unusable(related)
    if not existed:
        return Verdict("False", Reason.OBJECT_DOES_NOT_EXIST, f"{related} does not exist")
    still = "" if cluster.metadata.deletion_timestamp else ", but the Cluster still exists"
    return Verdict("False", Reason.OBJECT_DELETED, f"{related} has been deleted{still}")


# -- machines --------------------------------------------------------------------------------------------------------


def machines(found: Sequence[Machine], kind: str, reasons: summary.Reasons) -> Verdict:
    if not found:
        return Verdict("True", Reason.NO_REPLICAS)
    return _aggregate(found, kind, reasons)


def _grown(found: Iterable[Machine], now: float) -> list[Machine]:
    """Without those that are too young to have been compared."""
    return [
        m for m in found if condition.find(m.status.conditions, Condition.UP_TO_DATE) or _age(m, now) > _YOUNG_SECONDS
    ]


def _age(machine: Machine, now: float) -> float:
    created = machine.metadata.creation_timestamp
    return now - parse_time(created) if created else 0.0


def _timer(found: Iterable[Machine], now: float, seconds: float) -> Wait | None:
    """A Machine that has not been compared by then is reported. `seconds`: when something else changes with time."""
    young = [
        _YOUNG_SECONDS - age + 1.0
        for m in found
        # Stand-alone ones are compared by nobody: they are what they are.
        if controller_of(m) and not condition.find(m.status.conditions, Condition.UP_TO_DATE)
        if (age := _age(m, now)) <= _YOUNG_SECONDS
    ]
    young += [seconds] if seconds else []
    return Wait("WaitingForMachines", after=min(young), quiet=True) if young else None


def workers_available(seen: Observed) -> Verdict:
    """Pools count as soon as they say something."""
    groups: list[Any] = list(seen.descendants.deployments)
    groups += [p for p in seen.descendants.pools if condition.find(p.status.conditions, Condition.AVAILABLE)]
    if not groups:
        return Verdict("True", Reason.NO_WORKERS)
    return _aggregate(groups, Condition.AVAILABLE, summary.AVAILABLE)


def going_on(seen: Observed, kind: str, word: str, *, sets: bool = False) -> Verdict:
    """RollingOut, ScalingUp, ScalingDown: of the control plane and of the workers, as far as they report it."""
    groups: list[Any] = []
    control_plane = seen.control_plane.object
    if control_plane is not None and contract.control_plane.condition(control_plane, kind) is not None:
        groups.append(control_plane)
    found = seen.descendants
    groups += [p for p in found.pools if condition.find(p.status.conditions, kind)]
    groups += found.deployments
    if sets:
        groups += [s for s in found.sets if controller_of(s) is None]
    if not groups:
        return Verdict("False", f"Not{word}")
    return _aggregate(groups, kind, summary.Reasons(word, f"{word}Unknown", f"Not{word}"), negative=True)


def remediating(found: Sequence[Machine]) -> Verdict:
    plain = [m for m in found if POOL_NAME_LABEL not in m.metadata.labels]
    todo = [m for m in plain if to_be_remediated(m)]
    if todo:
        made = _aggregate(todo, Condition.OWNER_REMEDIATED, summary.Reasons(*[Reason.REMEDIATING] * 3))
        return Verdict("True", Reason.REMEDIATING, made.message)
    sick = sorted(m.metadata.name for m in plain if unhealthy(m))
    if not sick:
        return Verdict("False", Reason.NOT_REMEDIATING)
    more = f" and {len(sick) - _SHOWN} more" if len(sick) > _SHOWN else ""
    many = len(sick) > 1
    text = f"Machine{'s' if many else ''} {', '.join(sick[:_SHOWN])}{more} {'are' if many else 'is'} not healthy, "
    return Verdict("False", Reason.NOT_REMEDIATING, f"{text}and no controller remediates {'them' if many else 'it'}")


def _aggregate(objects: Sequence[Any], kind: str, reasons: summary.Reasons, *, negative: bool = False) -> Verdict:
    made = summary.aggregate(objects, kind, reasons=reasons, negative=negative)
    return Verdict(made["status"], made["reason"], made["message"])


# -- the whole -------------------------------------------------------------------------------------------------------


def remote_connection_probe(cluster: Cluster, seen: Observed, now: float) -> Verdict:
    """Short silences are not told, nor that of controllers which have only just begun to ask."""
    last, since = seen.connection.last_probe, seen.connection.since
    if seen.connection.up or (last is not None and now - last <= GRACE_SECONDS):
        return Verdict("True", Reason.PROBE_SUCCEEDED)
    if last is None and (since is None or now - since <= GRACE_SECONDS):
        if condition.is_true(cluster.status.conditions, Condition.REMOTE_CONNECTION_PROBE):
            return Verdict("True", Reason.PROBE_SUCCEEDED)
    text = seen.connection.why or "the workload cluster has not been reached yet"
    if last is not None:
        text = f"{text}; it last answered at {rfc3339(last)}"
    return Verdict("False", Reason.PROBE_FAILED, text)


def available(cluster: Cluster, seen: Observed) -> Verdict:
    gates = cluster.spec.availability_gates
    if not gates and seen.cluster_class is not None:
        gates = seen.cluster_class.spec.availability_gates
    negative = {Condition.DELETING} | {gate.condition_type for gate in gates if gate.polarity == "Negative"}
    made = summary.summary(
        cluster.status.conditions,
        Condition.AVAILABLE,
        [*_GATES, *(gate.condition_type for gate in gates)],
        reasons=summary.AVAILABLE,
        optional=() if cluster.spec.topology.class_ref is not None else (Condition.TOPOLOGY_RECONCILED,),
        priority=_judge(negative, going=bool(cluster.metadata.deletion_timestamp)),
    )
    root = root_cause(cluster, seen) if made["status"] != "True" else ""
    return Verdict(made["status"], made["reason"], f"{root}\n{made['message']}" if root else made["message"])


def root_cause(cluster: Cluster, seen: Observed) -> str:
    """The deepest cause that is known, in one sentence with the object it is on; '' when nobody says one."""
    if cluster.metadata.deletion_timestamp:
        return seen.deletion.message if seen.deletion is not None else ""
    for related in (seen.infrastructure, seen.control_plane):
        if related.trouble:
            return related.trouble
        if related.missing:
            return f"{related} does not exist"
    if seen.refused is not None:
        return seen.refused.message
    if seen.trouble is not None:
        return seen.trouble[1]
    plugin = condition.find(cluster.status.conditions, Condition.NETWORK_PLUGIN_READY)
    if plugin is not None:
        return str(plugin["message"])
    return _booting(cluster, seen) or next(iter(causes(seen.parts)), "")


def _booting(cluster: Cluster, seen: Observed) -> str:
    """The first machine runs, and nothing answers on it. What the infrastructure warned about is the likely cause;
    nobody but the connection knows more."""
    if cluster.status.initialization.control_plane_initialized or not seen.connection.why:
        return ""
    for machine in seen.descendants.control_plane:
        if condition.is_true(machine.status.conditions, Condition.INFRASTRUCTURE_READY):
            if warned := _warning(seen.infrastructure):
                return warned
            return f"{described(machine)}: it runs, but its API server can't be reached: {seen.connection.why}"
    return ""


def _warning(related: Related) -> str:
    """Such as an image with another version of Kubernetes, which only its name tells."""
    for kind in (Condition.REFERENCES_RESOLVED, *_WARNED):
        said = contract.infra_cluster.condition(related.object, kind) if related.object is not None else None
        if said is not None and said["status"] == "False" and said.get("message"):
            return f"{related}: {said['message']}"
    return ""


def _judge(negative: set[str], *, going: bool) -> summary.Judge:
    """Conditions that are False in normal operation are not an issue."""
    usual = summary.judge(*negative)

    def judged(found: Mapping[str, Any]) -> summary.Priority:
        kind, reason = found["type"], found["reason"]
        gone = kind in (Condition.INFRASTRUCTURE_READY, Condition.CONTROL_PLANE_AVAILABLE) and reason in _GONE
        underway = (
            kind == Condition.TOPOLOGY_RECONCILED and found["status"] == "False" and reason not in _TOPOLOGY_ISSUES
        )
        return summary.Priority.INFO if (going and gone) or underway else usual(found)

    return judged


def phase(cluster: Cluster) -> str:
    endpoint = cluster.spec.control_plane_endpoint
    if cluster.metadata.deletion_timestamp:
        return "Deleting"
    if cluster.status.initialization.infrastructure_provisioned and endpoint.host and endpoint.port:
        return "Provisioned"
    if cluster.spec.infrastructure_ref is not None or cluster.spec.control_plane_ref is not None:
        return "Provisioning"
    return cluster.status.phase or "Pending"
