"""StateManagementProvider: services are brought into clusters by the plane itself; `suspend` stops that."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.k0rdent.v1beta1 import StateManagementProvider
from homeport.capi.component import Setup
from homeport.platforms.k0rdent.reconciler import CheckReconciler
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

_PARTS = ("RBACReady", "AdapterReady", "ProvisionerReady", "ProvisionerCRDsReady")
_SAID = "the plane itself brings services into clusters: adapter and provisioner have no effect"


class ProviderReconciler(CheckReconciler[StateManagementProvider]):
    controller_name = "k0rdent-statemanagementprovider"
    kind = StateManagementProvider
    workers = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)

    def phases(self, scope: Scope[StateManagementProvider]) -> Sequence[Phase[Scope[StateManagementProvider]]]:
        return [self._report_parts]

    async def _report_parts(self, scope: Scope[StateManagementProvider]) -> Wait | None:
        now = rfc3339(self.clock.now())
        for kind in _PARTS:
            scope.report(kind, "True", "Succeeded", _SAID, now)
        scope.object.status.ready = not scope.object.spec.suspend
        if scope.object.spec.suspend:
            return Wait("Suspended", "spec.suspend: services of this provider are not changed", quiet=True)
        return None
