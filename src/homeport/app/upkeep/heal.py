"""Asks the owner of a Machine to replace it now, in the way in which health checks do."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi.name import CONTROL_PLANE_LABEL, REMEDIATE_MACHINE, SKIP_REMEDIATION, Condition, Reason
from homeport.capi.object.ownership import controller_of
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339

_WRITE = Write(field_manager="homeport-heal")
_ATTEMPTS = 5


class Unsafe(Exception):
    """The Machine is not replaced; says why, and what to do."""


async def heal(client: Client, key: Key, now: float, *, force: bool) -> str:
    """Marks the Machine. Returns the kind and name of the owner that replaces it. Raises Unsafe."""
    machine = await client.get(Machine, key)
    cluster = await _cluster(client, machine)
    others = [
        each
        for each in (await client.list(Machine, Query(namespace=key.namespace))).items
        if each.spec.cluster_name == machine.spec.cluster_name and each.metadata.name != key.name
    ]
    problem = unsafe(machine, cluster, others, force=force)
    if problem:
        raise Unsafe(problem)
    owner = controller_of(machine)
    assert owner is not None  # otherwise it is unsafe
    await client.patch(
        Machine,
        key,
        MergePatch({"metadata": {"uid": machine.metadata.uid, "annotations": {REMEDIATE_MACHINE: ""}}}),
        _WRITE,
    )
    if owner["kind"] == "MachineSet":  # control planes read the annotation, MachineSets what a health check reports
        await _report(client, key, machine.metadata.uid, now)
    return f"{owner['kind']} {owner['name']}"


async def _cluster(client: Client, machine: Machine) -> Cluster | None:
    try:
        return await client.get(Cluster, Key(machine.metadata.namespace, machine.spec.cluster_name))
    except NotFound:
        return None


def unsafe(machine: Machine, cluster: Cluster | None, others: Sequence[Machine], *, force: bool) -> str:
    """Why the Machine must not be replaced now; '' if it can be. `force` leaves out what can be argued about."""
    name, meta = machine.metadata.name, machine.metadata
    if meta.deletion_timestamp:
        return f"Machine {name} is being deleted already"
    if controller_of(machine) is None:
        return f"Machine {name} has no controller that would replace it: delete it, and create another one"
    if SKIP_REMEDIATION in meta.annotations:
        return f"Machine {name} has the annotation {SKIP_REMEDIATION}: remove it first"
    if cluster is not None and cluster.spec.paused:
        return f"Cluster {cluster.metadata.name} is paused: set spec.paused to false first"
    if CONTROL_PLANE_LABEL in meta.labels:
        planes = [each for each in others if CONTROL_PLANE_LABEL in each.metadata.labels]
        if not planes:
            text = f"Machine {name} is the only control plane machine: its etcd has the only copy of the cluster's data"
            return f"{text}. Scale the control plane to 3 first, or restart it: homeport rollout restart"
        broken = [each.metadata.name for each in planes if not _ready(each)]
        if broken and not force:
            return (
                f"other control plane machines are not ready: {', '.join(broken)}. etcd may lose its quorum: heal "
                "those first, or use --force"
            )
    if _ready(machine) and not force:
        return f"Machine {name} is healthy: use --force to replace it nevertheless"
    return ""


def _ready(machine: Machine) -> bool:
    return condition.is_true(machine.status.conditions, Condition.READY)


async def _report(client: Client, key: Key, uid: str, now: float) -> None:
    """What a MachineHealthCheck writes, also where none watches this Machine."""
    for _ in range(_ATTEMPTS):
        machine = await client.get(Machine, key)
        if machine.metadata.uid != uid:
            raise NotFound(f"Machine {key.name} was replaced meanwhile")
        found = list(machine.status.conditions)
        text = f"the annotation {REMEDIATE_MACHINE} requests it"
        when = rfc3339(now)
        found = condition.put(
            found, Condition.HEALTH_CHECK_SUCCEEDED, "False", Reason.HAS_REMEDIATE_ANNOTATION, text, now=when
        )
        found = condition.put(found, Condition.OWNER_REMEDIATED, "False", Reason.WAITING_FOR_REMEDIATION, "", now=when)
        body = {"metadata": {"resourceVersion": machine.metadata.resource_version}, "status": {"conditions": found}}
        try:
            await client.patch(Machine, key, MergePatch(body), _WRITE, subresource="status")
        except Conflict:
            continue
        return
    raise Unsafe(f"Machine {key.name} changes all the time: try again")
