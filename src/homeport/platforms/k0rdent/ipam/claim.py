"""ClusterIPAMClaim: checked, and turned into a ClusterIPAM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.k0rdent.v1beta1 import GROUP, VERSION, ClusterIPAM, ClusterIPAMClaim
from homeport.capi.component import Setup
from homeport.capi.object.ownership import owner_reference
from homeport.capi.reconciler import PausableReconciler
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.ipam.pool import IN_CLUSTER, claim_error
from homeport.platforms.k0rdent.name import MANAGED
from homeport.platforms.k0rdent.reconciler import CheckReconciler
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

INVALID = "InvalidClaimCondition"
PROVIDER_ERROR = "IPAMProviderConditionError"
ClaimScope = Scope[ClusterIPAMClaim]


def ipam_name(claim: ClusterIPAMClaim) -> str:
    return claim.spec.cluster_ipam_ref or claim.metadata.name


class ClaimReconciler(PausableReconciler[ClusterIPAMClaim, ClaimScope], CheckReconciler[ClusterIPAMClaim]):
    controller_name = "k0rdent-clusteripamclaim"
    kind = ClusterIPAMClaim
    workers = 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._ipams = self.informers.get(ClusterIPAM).cache
        self.controller.map(ClusterIPAM, self._of_ipam)

    def _of_ipam(self, ipam: Any) -> Iterable[Key]:
        return [Key(ipam.metadata.namespace, ipam.spec.cluster_ipam_claim_ref)]

    def phases(self, scope: ClaimScope) -> Sequence[Phase[ClaimScope]]:
        return [self._converge]

    async def _converge(self, scope: ClaimScope) -> Wait | None:
        obj, now = scope.object, rfc3339(self.clock.now())
        wrong = claim_error(obj.spec)
        scope.report(INVALID, "True" if wrong else "False", "Invalid" if wrong else "Valid", wrong, now)
        if wrong:
            return Wait("Invalid", wrong, warning=True)
        if obj.spec.provider != IN_CLUSTER:
            text = f"spec.provider: {obj.spec.provider} is not supported: use {IN_CLUSTER}"
            scope.report(PROVIDER_ERROR, "True", "NotSupported", text, now)
            return Wait("NotSupported", text, warning=True)
        key = Key(obj.metadata.namespace, ipam_name(obj))
        held = self._ipams.get(key)
        if held is not None and held.spec.cluster_ipam_claim_ref not in ("", obj.metadata.name):
            text = f"ClusterIPAM {key} belongs to claim {held.spec.cluster_ipam_claim_ref}: set another clusterIPAMRef"
            return Wait("Taken", text, warning=True)
        await self.applier.hold(scope.key, _render(obj, key), ClusterIPAM.__resource__, cached=held, watched=True)
        obj.status.bound = held is not None and held.status.phase == "Bound"
        return None if obj.status.bound else Wait("Pending", f"ClusterIPAM {key} is not bound yet")


def _render(claim: ClusterIPAMClaim, key: Key) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ClusterIPAM",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": dict(MANAGED),
            "ownerReferences": [owner_reference(claim, controller=True)],
        },
        "spec": {"provider": claim.spec.provider, "clusterIPAMClaimRef": claim.metadata.name},
    }


def install(setup: Setup) -> None:
    setup.manager.add(ClaimReconciler(setup).controller)
