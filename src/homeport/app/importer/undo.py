"""Takes an import back: the marks go, then the objects, and no VM is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig, KubeadmConfigTemplate
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.app.importer.account import open_importer
from homeport.app.importer.body import IMPORTED, STATE
from homeport.app.importer.construction import MANAGER
from homeport.app.importer.source import Refused
from homeport.capi.name import CLUSTER_NAME_LABEL, SECRET_TYPE, Condition
from homeport.capi.remote.pki import SECRET
from homeport.client.dial import DialOptions
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.infra.candidate import Mark
from homeport.machinery import condition
from homeport.move.departure import remove
from homeport.move.record import Moved
from homeport.providers.harvester.importer import HarvesterImporter
from homeport.providers.nutanix.importer import NutanixImporter
from homeport.runtime.clock import Clock

Say = Callable[[str], None]

_UNDOING = "undoing"
_PAUSE_SECONDS = 60.0
_POLL_SECONDS = 1.0
_WRITE = Write(field_manager=MANAGER)


async def undo(client: Client, key: Key, clock: Clock, dial: DialOptions, say: Say, *, dry_run: bool) -> None:
    """Raises Refused, ProviderError. Safe to repeat: the Cluster goes last."""
    cluster = await _imported(client, key)
    objects = await _objects(client, cluster)
    if dry_run:
        for machine in _infra_machines(cluster, objects):
            say(f"would remove the mark of VM {_vm_id(machine)} (Machine {machine.name})")
        say(f"would delete {len(objects)} objects of Cluster {key}; VMs stay")
        return
    body = {"metadata": {"annotations": {STATE: _UNDOING}}, "spec": {"paused": True}}
    await client.patch(Cluster, key, MergePatch(body), _WRITE)
    objects = await _at_rest(client, cluster, clock)
    infra_clusters = [each for kind, each in objects if kind == _vendor(cluster).cluster_kind]
    for infra_cluster in infra_clusters:  # none: an earlier attempt got further than this
        await _unmark(client, key, infra_cluster, _infra_machines(cluster, objects), clock, dial, say)
    await remove(client, [_moved(kind, each) for kind, each in objects])
    say(f"deleted {len(objects)} objects of Cluster {key}; its VMs run on")


async def _imported(client: Client, key: Key) -> Cluster:
    try:
        cluster = await client.get(Cluster, key)
    except NotFound:
        raise Refused(f"Cluster {key} does not exist: there is nothing to undo") from None
    if cluster.metadata.annotations.get(IMPORTED) != key.name:
        raise Refused(f"Cluster {key} was not imported: use `homeport move` to hand it over, or delete it")
    return cluster


def _vendor(cluster: Cluster) -> type[NutanixImporter] | type[HarvesterImporter]:
    ref = cluster.spec.infrastructure_ref
    assert ref is not None  # an import sets it
    return next(each for each in (NutanixImporter, HarvesterImporter) if each.cluster_kind.kind == ref.kind)


async def _objects(client: Client, cluster: Cluster) -> list[tuple[Resource, Unstructured]]:
    """The Cluster and all that belongs to it, owners first: they are removed in the reverse order."""
    name, namespace, vendor = cluster.metadata.name, cluster.metadata.namespace, _vendor(cluster)
    found: list[tuple[Resource, Unstructured]] = []
    for kind in (Cluster.__resource__, vendor.cluster_kind):
        listed = await client.list(kind, Query(namespace=namespace, fields=f"metadata.name={name}"))
        found += [(kind, Unstructured({**kind.type_meta, **each})) for each in listed.items]  # lists leave it out
    query = Query(namespace=namespace, labels=f"{CLUSTER_NAME_LABEL}={name}")
    for kind in (
        SECRET,
        vendor.template_kind,
        KubeadmConfigTemplate.__resource__,
        KubeadmControlPlane.__resource__,
        MachineDeployment.__resource__,
        MachineSet.__resource__,
        KubeadmConfig.__resource__,
        vendor.machine_kind,
        Machine.__resource__,
    ):
        listed = await client.list(kind, query)
        found += [(kind, each) for each in listed.items if kind != SECRET or _is_own_secret(each)]
    return found


def _infra_machines(cluster: Cluster, objects: Sequence[tuple[Resource, Unstructured]]) -> list[Unstructured]:
    return [each for kind, each in objects if kind == _vendor(cluster).machine_kind]


def _is_own_secret(secret: Unstructured) -> bool:
    annotations = secret.metadata.get("annotations") or {}
    return IMPORTED in annotations or secret.get("type") == SECRET_TYPE


async def _at_rest(client: Client, cluster: Cluster, clock: Clock) -> list[tuple[Resource, Unstructured]]:
    """All objects, once no controller works on them: one that does could create a VM that nobody then knows."""
    until = clock.monotonic() + _PAUSE_SECONDS
    while True:
        objects = await _objects(client, cluster)
        busy = [f"{kind.kind} {each.name}" for kind, each in objects if _is_active(each)]
        if not busy:
            return objects
        if clock.monotonic() > until:
            raise Refused(
                f"{busy[0]}: its controller has not confirmed the pause: check that the plane's controllers run, then "
                "repeat the command"
            )
        await asyncio.sleep(_POLL_SECONDS)


def _is_active(obj: Unstructured) -> bool:
    conditions: Any = (obj.get("status") or {}).get("conditions") or []
    found = condition.find(conditions, Condition.PAUSED)
    return found is not None and found.get("status") == "False"


async def _unmark(
    client: Client,
    key: Key,
    infra_cluster: Unstructured,
    machines: list[Unstructured],
    clock: Clock,
    dial: DialOptions,
    say: Say,
) -> None:
    importer = await open_importer(client, infra_cluster, clock, dial)
    try:
        for machine in machines:
            vm = _vm_id(machine)
            mark = Mark(Key(key.namespace, machine.name), machine.uid, key.name, infra_cluster.uid)
            if vm and await importer.unmark(vm, mark):
                say(f"removed the mark of VM {vm} (Machine {machine.name})")
        await importer.forget(key.name)
    finally:
        await importer.close()


def _vm_id(machine: Unstructured) -> str:
    return str((machine.get("spec") or {}).get("providerID") or "").rpartition("/")[2]


def _moved(kind: Resource, obj: Unstructured) -> Moved:
    return Moved(kind.group, kind.version, kind.kind, kind.plural, kind.namespaced, obj.namespace, obj.name, obj.uid)
