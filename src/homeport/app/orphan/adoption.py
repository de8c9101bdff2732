"""Orphaned VMs of a cluster, for their user: what there is, the missing objects made again, and removal.

The controllers look, and remove: this asks them through annotations of the infrastructure cluster. Adoption creates
objects like any other client. It pauses the Cluster meanwhile: a controller that sees half of it would replace or
delete what it takes for one machine too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, ContractRef, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.app.orphan.request import WRITE, Refused, ask, choose, find_cluster, look, served_resource
from homeport.capi.name import BOOTSTRAP_GROUP, DELETE_MACHINE
from homeport.capi.object.ownership import controller_of, is_controlled_by
from homeport.capi.object.template import clone
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.controlplane.creation import machine_kind
from homeport.controlplane.kubeadm import desired
from homeport.core.machineset.machine import annotations_of, labels_of, new_machine
from homeport.infra.orphan.record import Found, Request

_LOOKS = 10


@dataclass(frozen=True, slots=True)
class AdoptionRequest:
    """Which VMs are to be adopted, by name or id; none: all that are Nodes. `machine_set`: for workers."""

    names: tuple[str, ...] = ()
    machine_set: str = ""


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
    cluster = await find_cluster(client, key)
    machines = [
        each
        for each in (await client.list(Machine, Query(namespace=key.namespace))).items
        if each.spec.cluster_name == key.name
    ]
    ids = {each.metadata.name: (each.spec.provider_id or "").rpartition("/")[2] for each in machines}
    answer = await ask(client, cluster, Request(seek=tuple(each for each in ids.values() if each)))
    chosen = choose(answer.found, wanted.names, key) if wanted.names else [e for e in answer.found if e.role]
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
        config_template = await _template(client, ref, namespace)
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


async def _template(client: Client, ref: ContractRef | None, namespace: str) -> Unstructured:
    if ref is None:
        raise Refused("the owner has no infrastructureRef to a template")
    kind = await served_resource(client, ref)
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
    await client.patch(Cluster, key, MergePatch({"spec": {"paused": True}}), WRITE)
    made: list[tuple[Resource, dict[str, Any]]] = []
    try:
        for name in plan.outlived:
            patch = MergePatch({"metadata": {"annotations": {DELETE_MACHINE: ""}}})
            await client.patch(Machine, Key(key.namespace, name), patch, WRITE)
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
        await client.patch(Cluster, key, MergePatch({"spec": {"paused": None}}), WRITE)


async def _scale(client: Client, owner: type[Any], key: Key, count: int) -> None:
    await client.patch(owner, key, MergePatch({"spec": {"replicas": count}}), WRITE)


async def _create(client: Client, kind: Resource, body: dict[str, Any]) -> bool:
    """False: it is there already, and about the same machine."""
    try:
        await client.create(body, WRITE, kind=kind)
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
            await client.patch(kind, key, MergePatch({"metadata": {"finalizers": None}}), WRITE)
            await client.delete(kind, key)
        except NotFound:
            continue
