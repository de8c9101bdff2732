"""Orphaned VMs of a cluster, for their user: what there is, the missing objects made again, and removal.

The controllers look, and remove: this asks them through annotations of the infrastructure cluster. Adoption creates
objects like any other client. It pauses the Cluster meanwhile: a controller that sees half of it would replace or
delete what it takes for one machine too many.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import BOOTSTRAP_GROUP, DELETE_MACHINE
from homeport.capi.object.ownership import controller_of, is_controlled_by
from homeport.capi.object.template import clone
from homeport.capi.resolution import plural
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.controlplane.kubeadm import desired
from homeport.controlplane.kubeadm.creation import machine_kind
from homeport.core.machineset.machine import annotations_of, labels_of, new_machine
from homeport.infra.record import REQUEST, Answer, Found, Request
from homeport.infra.sweep import SILENT

_ANSWER_SECONDS = 60.0
_LOOKS = 10
_WRITE = Write(field_manager="homeport-orphans")


class Refused(Exception):
    """It can't be done, or should not; says why and what to do."""


@dataclass(frozen=True, slots=True)
class AdoptionRequest:
    """Which VMs are to be adopted, by name or id; none: all that are Nodes. `machine_set`: for workers."""

    names: tuple[str, ...] = ()
    machine_set: str = ""


# -- asking --------------------------------------------------------------------------------------------------------


async def look(client: Client, key: Key) -> tuple[Found, ...]:
    return (await _ask(client, await _cluster(client, key), Request())).found


async def _cluster(client: Client, key: Key) -> Cluster:
    cluster = await client.get(Cluster, key)
    if cluster.spec.paused:
        raise Refused(f"Cluster {key} is paused: its controllers do not answer. Unpause it first")
    return cluster


def _infra_kind(cluster: Cluster) -> tuple[Resource, Key]:
    ref = cluster.spec.infrastructure_ref
    if ref is None:
        raise Refused(f"Cluster {cluster.metadata.name} has no infrastructureRef: it has no VMs")
    return Resource(ref.api_group, "v1beta1", ref.kind, plural(ref.kind)), Key(cluster.metadata.namespace, ref.name)


async def _ask(client: Client, cluster: Cluster, request: Request) -> Answer:
    kind, key = _infra_kind(cluster)
    asked = Request(f"user-{uuid.uuid4().hex}", request.remove, request.force, request.seek)
    await client.patch(kind, key, MergePatch({"metadata": {"annotations": {REQUEST: asked.render()}}}), _WRITE)
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    try:
        async with asyncio.timeout(_ANSWER_SECONDS), client.watch(kind, query, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED"):
                    continue
                answer = Answer.parse(event.object.metadata.get("annotations") or {})
                if answer.request == asked.id:
                    if answer.error:
                        raise Refused(f"{kind.kind} {key}: {answer.error}")
                    return answer
    except TimeoutError:
        pass
    raise Refused(f"{kind.kind} {key}: no answer within {_ANSWER_SECONDS:g} s: check that the plane is running")


# -- removal -------------------------------------------------------------------------------------------------------


async def removable(client: Client, key: Key, names: Sequence[str], *, force: bool) -> list[Found]:
    """The orphans of these names or ids. Raises Refused for one that is not an orphan or may be in use."""
    chosen = _chosen(await look(client, key), names, key)
    for each in chosen:
        if each.role is not None and not force:
            raise Refused(f"VM {each.owned.name} {each.role}: adopt it, or use --force to delete it nevertheless")
        if each.kept.startswith(SILENT) and not force:
            raise Refused(f"VM {each.owned.name}: {each.kept}; use --force to delete it nevertheless")
    return chosen


async def remove(client: Client, key: Key, chosen: Sequence[Found], *, force: bool) -> None:
    request = Request(remove=tuple(each.owned.id for each in chosen), force=force)
    answer = await _ask(client, await _cluster(client, key), request)
    kept = [each for each in answer.found if each.owned.id in request.remove and not each.removing]
    if kept:
        raise Refused(f"VM {kept[0].owned.name} was kept: {kept[0].kept}")


def _chosen(found: Sequence[Found], names: Sequence[str], key: Key) -> list[Found]:
    chosen = []
    for name in names:
        fits = [each for each in found if name in (each.owned.name, each.owned.id)]
        if not fits:
            raise Refused(f"VM {name} is not an orphan of cluster {key.name}: see 'homeport orphans list {key.name}'")
        if len(fits) > 1:
            raise Refused(f"VM {name}: several orphans have this name: use the ID")
        chosen.append(fits[0])
    return chosen


# -- adoption ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Plan:
    """What adoption creates, and how many replicas owners then have."""

    create: list[tuple[Resource, dict[str, Any]]] = field(default_factory=list)
    replicas: dict[tuple[type[Any], str], tuple[int, int]] = field(default_factory=dict)  # before and after
    outlived: list[str] = field(default_factory=list)  # Machines whose VM is gone: they go first

    def lines(self) -> list[str]:
        made = [f"create {kind.kind} {body['metadata']['name']}" for kind, body in self.create]
        made += [
            f"set replicas of {kind.__name__} {name} to {count}" for (kind, name), (_, count) in self.replicas.items()
        ]
        return [*made, *(f"mark Machine {name} for deletion: its VM is gone" for name in self.outlived)]


async def adopt(client: Client, key: Key, wanted: AdoptionRequest, *, dry_run: bool) -> list[str]:
    """What was done, or would be, line by line."""
    cluster = await _cluster(client, key)
    machines = [
        each
        for each in (await client.list(Machine, Query(namespace=key.namespace))).items
        if each.spec.cluster_name == key.name
    ]
    ids = {each.metadata.name: (each.spec.provider_id or "").rpartition("/")[2] for each in machines}
    answer = await _ask(client, cluster, Request(seek=tuple(each for each in ids.values() if each)))
    chosen = _chosen(answer.found, wanted.names, key) if wanted.names else [e for e in answer.found if e.role]
    for each in chosen:
        if each.role is None or not each.role.node or not each.role.provider_id:
            raise Refused(f"VM {each.owned.name} is not a Node of the workload cluster: it can't be adopted")
    if not chosen:
        return ["no orphaned VM is a Node of the cluster: nothing to adopt"]
    gone = [
        each.metadata.name
        for each in machines
        if (id_ := ids[each.metadata.name]) and id_ not in answer.present and not each.metadata.deletion_timestamp
    ]
    plan = await _plan(client, cluster, chosen, wanted, machines, gone)
    if not dry_run:
        await _carry_out(client, key, plan)
        await _reported(client, key, {each.owned.id for each in chosen})
    return plan.lines()


async def _reported(client: Client, key: Key, ids: set[str]) -> None:
    """Waits until the controllers no longer report the adopted VMs as orphans: the next look of their own is far."""
    for _ in range(_LOOKS):
        try:
            if ids.isdisjoint(each.owned.id for each in await look(client, key)):
                return
        except Refused:
            return  # they can't look now, and will by themselves
        await asyncio.sleep(1.0)


async def _plan(
    client: Client,
    cluster: Cluster,
    chosen: Sequence[Found],
    wanted: AdoptionRequest,
    machines: Sequence[Machine],
    gone: Sequence[str],
) -> Plan:
    plan = Plan()
    owners: dict[str, tuple[Any, int]] = {}
    for each in chosen:
        assert each.role is not None
        owner: KubeadmControlPlane | MachineSet
        if each.role.control_plane:
            owner = await _control_plane(client, cluster, each)
            plan.create += await _control_plane_objects(client, owner, cluster.metadata.name, each)
        else:
            owner = await _machine_set(client, cluster, each, wanted.machine_set)
            plan.create += await _worker_objects(client, owner, each)
        uid = owner.metadata.uid
        owners[uid] = (owner, owners[uid][1] + 1 if uid in owners else 1)
    adopted = {each.owned.name for each in chosen}  # an adoption that was interrupted may have made their Machines
    for owner, count in owners.values():
        alive = [m for m in machines if is_controlled_by(m, owner) and m.metadata.name not in {*gone, *adopted}]
        plan.outlived += [m.metadata.name for m in machines if is_controlled_by(m, owner) and m.metadata.name in gone]
        await _grow(client, cluster, plan, owner, len(alive) + count)
    return plan


async def _control_plane(client: Client, cluster: Cluster, found: Found) -> KubeadmControlPlane:
    ref = cluster.spec.control_plane_ref
    if ref is None or ref.kind != "KubeadmControlPlane":
        raise Refused(f"VM {found.owned.name} is a control plane, and the Cluster has no KubeadmControlPlane")
    kcp = await client.get(KubeadmControlPlane, Key(cluster.metadata.namespace, ref.name))
    assert found.role is not None
    if kcp.spec.version != found.role.version:
        raise Refused(
            f"Node {found.role.node} runs {found.role.version}, and KubeadmControlPlane {ref.name} has spec.version "
            f"{kcp.spec.version}: it would be replaced. Set spec.version to {found.role.version} first"
        )
    return kcp


async def _control_plane_objects(
    client: Client, kcp: KubeadmControlPlane, cluster: str, found: Found
) -> list[tuple[Resource, dict[str, Any]]]:
    name, namespace = found.owned.name, kcp.metadata.namespace
    template = await _template(client, kcp.spec.machine_template.spec.infrastructure_ref, namespace)
    infra = _infra(template, name, namespace, cluster, desired.machine_labels(kcp, cluster), found)
    infra["metadata"]["annotations"].update(desired.machine_annotations(kcp))
    config = desired.kubeadm_config(kcp, cluster, name, join=True)
    config["metadata"].pop("ownerReferences", None)  # its Machine becomes its owner
    kind = machine_kind(template)
    machine = desired.machine(
        kcp,
        cluster,
        name,
        bootstrap={"apiGroup": BOOTSTRAP_GROUP, "kind": "KubeadmConfig", "name": name},
        infrastructure={"apiGroup": kind.group, "kind": kind.kind, "name": name},
    )
    return _objects(kind, infra, config, machine, found)


async def _machine_set(client: Client, cluster: Cluster, found: Found, named: str) -> MachineSet:
    assert found.role is not None
    namespace = cluster.metadata.namespace
    sets = [
        each
        for each in (await client.list(MachineSet, Query(namespace=namespace))).items
        if each.spec.cluster_name == cluster.metadata.name and not each.metadata.deletion_timestamp
    ]
    name = named or (found.role.owner_name if found.role.owner_kind == "MachineSet" else "")
    fits = [each for each in sets if each.metadata.name == name]
    if not fits and not named:
        # The MachineSet is newer than this state: its MachineDeployment has a current one.
        fits = [each for each in sets if (owner := controller_of(each)) and name.startswith(f"{owner['name']}-")]
        fits.sort(key=lambda each: each.spec.replicas or 0, reverse=True)
    if not fits:
        listed = ", ".join(sorted(each.metadata.name for each in sets)) or "none"
        raise Refused(
            f"VM {found.owned.name}: MachineSet {name!r} does not exist; use --machine-set (there are: {listed})"
        )
    return fits[0]


async def _worker_objects(
    client: Client, machine_set: MachineSet, found: Found
) -> list[tuple[Resource, dict[str, Any]]]:
    name, namespace, spec = found.owned.name, machine_set.metadata.namespace, machine_set.spec
    assert found.role is not None
    template = await _template(client, spec.template.spec.infrastructure_ref, namespace)
    infra = _infra(template, name, namespace, spec.cluster_name, labels_of(machine_set), found)
    infra["metadata"]["annotations"].update(annotations_of(machine_set))
    ref, config = spec.template.spec.bootstrap.config_ref, None
    if ref is not None:
        config_template = await _template(client, ref, namespace, "v1beta2")
        labels = labels_of(machine_set)
        config = clone(config_template, name=name, namespace=namespace, cluster_name=spec.cluster_name, labels=labels)
    kind = machine_kind(template)
    machine = new_machine(
        machine_set,
        name,
        bootstrap={"apiGroup": BOOTSTRAP_GROUP, "kind": config["kind"], "name": name} if config is not None else None,
        infrastructure={"apiGroup": kind.group, "kind": kind.kind, "name": name},
    )
    machine["spec"]["version"] = found.role.version
    return _objects(kind, infra, config, machine, found)


def _infra(
    template: Unstructured, name: str, namespace: str, cluster: str, labels: Mapping[str, str], found: Found
) -> dict[str, Any]:
    assert found.role is not None
    body = clone(template, name=name, namespace=namespace, cluster_name=cluster, labels=labels)
    body["spec"]["providerID"] = found.role.provider_id
    return body


def _objects(
    kind: Resource, infra: dict[str, Any], config: dict[str, Any] | None, machine: dict[str, Any], found: Found
) -> list[tuple[Resource, dict[str, Any]]]:
    """The Machine comes last: from then on the other two have an owner."""
    assert found.role is not None
    machine["spec"]["providerID"] = found.role.provider_id
    made = [(kind, infra)]
    if config is not None:
        made.append((KubeadmConfig.__resource__, config))
    return [*made, (Machine.__resource__, machine)]


async def _template(client: Client, ref: Any, namespace: str, version: str = "v1beta1") -> Unstructured:
    if ref is None:
        raise Refused("the owner has no infrastructureRef to a template")
    kind = Resource(ref.api_group, version, ref.kind, plural(ref.kind))
    found: Unstructured = await client.get(kind, Key(namespace, ref.name))
    found.setdefault("kind", kind.kind)
    found.setdefault("apiVersion", kind.api_version)
    return found


async def _grow(client: Client, cluster: Cluster, plan: Plan, owner: Any, count: int) -> None:
    """Owners must want as many Machines as run: each would delete what is more. A MachineSet and its MachineDeployment
    both count, and the one may look before the other has told it."""
    growth = count - (1 if owner.spec.replicas is None else owner.spec.replicas)
    if growth <= 0:
        return
    holder = controller_of(owner) if isinstance(owner, MachineSet) else None
    growing = [owner]
    if holder is not None:
        growing.append(await client.get(MachineDeployment, Key(owner.metadata.namespace, holder["name"])))
    for each in growing:
        kind, name = type(each), each.metadata.name
        before = 1 if each.spec.replicas is None else each.spec.replicas
        have = plan.replicas.get((kind, name), (before, before))[1]
        if cluster.spec.topology.class_ref is not None:
            raise Refused(
                f"{kind.__name__} {name} has {have} replicas, and {have + growth} Machines would belong to it: set "
                f"replicas in spec.topology of Cluster {cluster.metadata.name} to {have + growth} and adopt "
                "immediately afterwards"
            )
        plan.replicas[kind, name] = (before, have + growth)


async def _carry_out(client: Client, key: Key, plan: Plan) -> None:
    """Replicas grow first: an owner with more Machines than replicas deletes one, and this may be killed at any moment.
    One with fewer merely creates another."""
    await client.patch(Cluster, key, MergePatch({"spec": {"paused": True}}), _WRITE)
    made: list[tuple[Resource, dict[str, Any]]] = []
    try:
        for name in plan.outlived:
            patch = MergePatch({"metadata": {"annotations": {DELETE_MACHINE: ""}}})
            await client.patch(Machine, Key(key.namespace, name), patch, _WRITE)
        for (owner, name), (_, count) in plan.replicas.items():
            await _scale(client, owner, Key(key.namespace, name), count)
        for kind, body in plan.create:
            if await _create(client, kind, body):
                made.append((kind, body))
    except BaseException:  # a keyboard interrupt, too
        await _drop_unfinished(client, made)
        for (owner, name), (before, _) in plan.replicas.items():
            await _scale(client, owner, Key(key.namespace, name), before)
        raise
    finally:
        await client.patch(Cluster, key, MergePatch({"spec": {"paused": None}}), _WRITE)


async def _scale(client: Client, owner: type[Any], key: Key, count: int) -> None:
    await client.patch(owner, key, MergePatch({"spec": {"replicas": count}}), _WRITE)


async def _create(client: Client, kind: Resource, body: dict[str, Any]) -> bool:
    """False: it is there already, and about the same machine."""
    try:
        await client.create(body, _WRITE, kind=kind)
        return True
    except AlreadyExists:
        meta = body["metadata"]
        found = await client.get(kind, Key(meta["namespace"], meta["name"]))
        if (found.get("spec") or {}).get("providerID") != body["spec"].get("providerID"):
            raise Refused(
                f"{kind.kind} {meta['name']} already exists and belongs to another machine: delete it first"
            ) from None
        return False


async def _drop_unfinished(client: Client, made: Sequence[tuple[Resource, dict[str, Any]]]) -> None:
    """Nothing is adopted by halves: an owner with more Machines than replicas would delete one that runs.

    The Cluster is paused, so no controller takes this for the end of a machine: the VMs stay.
    """
    for kind, body in reversed(made):
        meta = body["metadata"]
        key = Key(meta["namespace"], meta["name"])
        try:
            await client.patch(kind, key, MergePatch({"metadata": {"finalizers": None}}), _WRITE)
            await client.delete(kind, key)
        except NotFound:
            continue
