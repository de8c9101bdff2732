"""What the machines of a cluster need in the infrastructure cluster: an endpoint, and zones to spread over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.meta import Resource, Unstructured
from homeport.infra.error import Denied
from homeport.infra.protocol import Check, FailureDomain, Owned, Power
from homeport.infra.protocol import ClusterDriver as ClusterDriverProtocol
from homeport.providers.harvester import endpoint
from homeport.providers.harvester.endpoint import FindMachines, Scope, balancer_kind
from homeport.providers.harvester.infracluster.belonging import left_behind
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    CLUSTER_UID,
    MACHINE_NAME,
    MACHINE_UID,
    NODE,
    SERVICE_UID,
    VM,
    VMI,
    ZONE,
)
from homeport.providers.harvester.machine.observation import addresses_of, machine_of, power_of
from homeport.providers.harvester.preflight.check import Preflight
from homeport.runtime.cache import deleting, labels_of
from homeport.runtime.outcome import Wait


class ClusterDriver(ClusterDriverProtocol[KubevirtCluster, HarvesterSession]):
    def __init__(self, preflight: Preflight, machines: FindMachines) -> None:
        self._preflight = preflight
        self._machines = machines

    async def preflight(self, scope: Scope) -> Sequence[Check]:
        return await self._preflight.run(scope)

    async def converge(self, scope: Scope) -> Wait | None:
        return await endpoint.converge(scope, self._machines)

    async def endpoint(self, scope: Scope) -> tuple[str, int] | None:
        return await endpoint.endpoint(scope)

    async def failure_domains(self, scope: Scope) -> Sequence[FailureDomain]:
        """The zones of the hosts, where all hosts have one: otherwise some of them would never be used."""
        try:
            nodes = await scope.session.list(NODE)
        except Denied:
            return []  # an account of a single namespace may not see hosts
        zones = [labels_of(each).get(ZONE, "") for each in nodes]
        if not zones or not all(zones):
            return []
        return [FailureDomain(zone, True, {"topologyKey": ZONE}) for zone in sorted(set(zones))]

    # -- the way back ------------------------------------------------------------------------------------------

    async def release(self, scope: Scope) -> Wait | None:
        """What machines left behind goes as well: all machines are gone by now."""
        wait = await endpoint.release(scope, self._machines)
        if wait is not None:
            return wait

        async def listed(kind: Resource) -> list[Unstructured]:
            return await self._list(scope, kind, f"{CLUSTER_UID}={scope.infra.metadata.uid}")

        left: list[str] = []
        for kind, each in await left_behind(listed):
            left.append(f"{kind.kind} {each.namespace}/{each.name}")
            if not deleting(each):
                await scope.session.delete(kind, each)
        left += await self._release_balancers(scope)
        if left:
            return Wait("Deleting", f"{', '.join(left[:3])} are being deleted", after=2.0)
        return None

    async def _release_balancers(self, scope: Scope) -> list[str]:
        """Those of Services of the workload cluster, which went without deleting them."""
        kind = balancer_kind(scope.session)
        try:
            found = await self._list(scope, kind, f"{CLUSTER_UID}={scope.infra.metadata.uid},{SERVICE_UID}")
        except Denied:
            return []  # reported before the first machine
        for each in found:
            if not deleting(each):
                await scope.session.delete(kind, each)
        return [f"{kind.kind} {each.namespace}/{each.name}" for each in found]

    async def list_owned(self, scope: Scope) -> Sequence[Owned]:
        """Every VM that was made for a machine of this cluster, and volumes that a VM left behind."""
        mine = f"{CLUSTER_UID}={scope.infra.metadata.uid}"
        vms = await self._list(scope, VM, mine)
        instances = {(each.namespace, each.name): each for each in await self._list(scope, VMI, MACHINE_NAME)}
        host = scope.infra.spec.control_plane_endpoint.host
        owned = []
        for vm in vms:
            machine = machine_of(vm, instances.get((vm.namespace, vm.name)))
            addresses = tuple(addresses_of(machine, virtual=host, first=0))
            owned.append(_owned(vm, vm.name, addresses, power_of(machine)))
        known = {each.uid for each in owned}
        for uid, left in (await self._volumes(scope, mine)).items():
            if uid and uid not in known:
                owned.append(replace(_owned(left[0], left[0].name, (), "off"), remains=True))
        return owned

    async def _volumes(self, scope: Scope, selector: str) -> dict[str, list[Unstructured]]:
        found: dict[str, list[Unstructured]] = defaultdict(list)
        for each in await self._list(scope, CLAIM, selector):
            found[labels_of(each).get(MACHINE_UID, "")].append(each)
        return found

    async def remove(self, scope: Scope, owned: Owned) -> None:
        """The VM, and what was made for it: Kubernetes keeps volumes until nothing uses them any more. A clone carries
        the same mark, and what it uses stays."""
        selector = f"{CLUSTER_UID}={owned.cluster_uid},{MACHINE_UID}={owned.uid}"
        vms = await self._list(scope, VM, selector)
        for vm in vms:
            if vm.uid == owned.id and not deleting(vm):
                await scope.session.delete(VM, vm)

        async def listed(kind: Resource) -> list[Unstructured]:
            return [vm for vm in vms if vm.uid != owned.id] if kind is VM else await self._list(scope, kind, selector)

        for kind, each in await left_behind(listed):
            if not deleting(each):
                await scope.session.delete(kind, each)

    async def _list(self, scope: Scope, kind: Resource, selector: str) -> list[Unstructured]:
        """In all namespaces, or in that of the account if it may not see others."""
        try:
            return await scope.session.list(kind, "", selector)
        except Denied:
            return await scope.session.list(kind, scope.session.namespace, selector)


def _owned(obj: Unstructured, name: str, addresses: tuple[str, ...], power: Power) -> Owned:
    labels = labels_of(obj)
    return Owned(obj.uid, name, labels.get(MACHINE_UID, ""), labels.get(CLUSTER_UID, ""), addresses, power)
