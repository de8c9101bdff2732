"""NutanixFailureDomains stay while anything is placed by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.nutanix.metro import NutanixMetro, NutanixMetroSite
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixFailureDomain
from homeport.client.protocol import Key
from homeport.infra.reconciler import ProviderReconciler
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Scope

FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixfailuredomain"
SAFE = "FailureDomainSafeForDeletion"


class FailureDomainReconciler(ProviderReconciler[NutanixFailureDomain]):
    condition = SAFE

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager, "nutanix", NutanixFailureDomain, FINALIZER)
        self._domains = manager.informers.get(NutanixFailureDomain).cache
        self._clusters = manager.informers.get(NutanixCluster).cache
        self._metros = manager.informers.get(NutanixMetro).cache
        self._sites = manager.informers.get(NutanixMetroSite).cache
        self._machines = manager.informers.get(Machine).cache
        self._deployments = manager.informers.get(MachineDeployment).cache

    async def reconcile(self, key: Key) -> Wait | None:
        domain = self._domains.get(key)
        if domain is None:
            return None
        scope = Scope(domain)
        if not scope.deleting:
            await self._hold_finalizer(scope)
            return None
        return await self.reported(scope, self._release(scope))

    async def _release(self, scope: Scope[NutanixFailureDomain]) -> Wait | None:
        users = list(self._users(scope.key))
        if users:
            more = f" and {len(users) - 5} more" if len(users) > 5 else ""
            return Wait("FailureDomainInUse", f"still used by {', '.join(users[:5])}{more}", warning=True)
        await self._drop_finalizer(scope)
        return None

    def _users(self, key: Key) -> Iterator[str]:
        for cluster in self._clusters.list(key.namespace):
            if key.name in (ref.name for ref in cluster.spec.control_plane_failure_domains):
                yield f"NutanixCluster {cluster.metadata.name}"
        for metro in self._metros.list(key.namespace):
            if key.name in (ref.name for ref in metro.spec.failure_domains):
                yield f"NutanixMetro {metro.metadata.name}"
        for site in self._sites.list(key.namespace):
            if site.spec.preferred_failure_domain.name == key.name:
                yield f"NutanixMetroSite {site.metadata.name}"
        for deployment in self._deployments.list(key.namespace):
            if deployment.spec.template.spec.failure_domain == key.name:
                yield f"MachineDeployment {deployment.metadata.name}"
        for machine in self._machines.list(key.namespace):
            if machine.spec.failure_domain == key.name:
                yield f"Machine {machine.metadata.name}"


def install(manager: Manager) -> None:
    domains = manager.informers.get(NutanixFailureDomain).cache

    def waiting(obj: Any) -> Iterator[Key]:
        """Those that are to be deleted may go when one of their users went."""
        for domain in domains.list(obj.metadata.namespace):
            if domain.metadata.deletion_timestamp:
                yield Key(domain.metadata.namespace, domain.metadata.name)

    controller = Controller("nutanixfailuredomain", NutanixFailureDomain, FailureDomainReconciler(manager), workers=2)
    for kind in (NutanixCluster, MachineDeployment, Machine, NutanixMetro, NutanixMetroSite):
        controller.map(kind, waiting)
    manager.add(controller)
