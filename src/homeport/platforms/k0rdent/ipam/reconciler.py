"""ClusterIPAM: one InClusterIPPool for each network of its claim. Addresses that machines use keep their pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.ipam.v1alpha2 import GROUP as POOL_GROUP
from homeport.api.ipam.v1alpha2 import InClusterIPPool
from homeport.api.k0rdent.v1beta1 import ClusterIPAM, ClusterIPAMClaim
from homeport.api.k0rdent.v1beta1.ipam import ProviderData
from homeport.capi.component import Setup
from homeport.capi.object.ownership import owner_reference
from homeport.capi.reconciler import PausableReconciler
from homeport.client.absence import drop_object
from homeport.client.errors import Forbidden, Invalid
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.ipam.claim import ipam_name
from homeport.platforms.k0rdent.ipam.pool import POOL_KIND, networks_of, pool_name, pool_spec, provider_config
from homeport.platforms.k0rdent.name import MANAGED
from homeport.platforms.k0rdent.reconciler import CheckReconciler
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

IpamScope = Scope[ClusterIPAM]
_RETRY_SECONDS = 60.0


class IpamReconciler(PausableReconciler[ClusterIPAM, IpamScope], CheckReconciler[ClusterIPAM]):
    controller_name = "k0rdent-clusteripam"
    kind = ClusterIPAM
    workers = 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._claims = self.informers.get(ClusterIPAMClaim).cache
        self._pools = self.informers.get(InClusterIPPool).cache
        self.controller.map(ClusterIPAMClaim, lambda claim: [Key(claim.metadata.namespace, ipam_name(claim))])
        self.controller.map(InClusterIPPool, _owners)

    def phases(self, scope: IpamScope) -> Sequence[Phase[IpamScope]]:
        return [self._converge]

    def expected(self, scope: IpamScope, error: Exception) -> Wait | None:
        """The API server refuses pools whose addresses overlap, or are in use and no longer listed."""
        if not isinstance(error, Invalid | Forbidden):
            return None
        scope.object.status.phase = "Pending"
        return Wait("PoolRefused", str(error), after=_RETRY_SECONDS, warning=True)

    async def _converge(self, scope: IpamScope) -> Wait | None:
        obj, status = scope.object, scope.object.status
        claim = self._claims.get(Key(obj.metadata.namespace, obj.spec.cluster_ipam_claim_ref))
        if claim is None:
            status.phase = "Pending"
            return Wait("Pending", f'ClusterIPAMClaim "{obj.spec.cluster_ipam_claim_ref}" does not exist: create it')
        status.provider_data = []
        for network, space in networks_of(claim.spec).items():
            key = Key(obj.metadata.namespace, pool_name(obj.metadata.name, network))
            held = self._pools.get(key)
            if held is not None and not _owns(obj, held):
                status.phase = "Pending"
                return Wait("Taken", f"{POOL_KIND} {key} exists and is not ours: rename it or the claim", warning=True)
            body = _render(obj, key, pool_spec(space))
            shown = await self.applier.hold(scope.key, body, InClusterIPPool.__resource__, cached=held, watched=True)
            data = ProviderData(name=network, config=provider_config(space, key.name), ready=shown)
            status.provider_data.append(data)
        await self._drop(obj)
        done = all(each.ready for each in status.provider_data)
        status.phase = "Bound" if done else "Pending"
        return None if done else Wait("Pending", "pools are being created")

    async def _drop(self, obj: ClusterIPAM) -> None:
        """Pools of networks that the claim no longer has."""
        wanted = {pool_name(obj.metadata.name, each.name) for each in obj.status.provider_data}
        for held in self._pools.list(obj.metadata.namespace):
            if held.metadata.name in wanted or held.metadata.deletion_timestamp or not _owns(obj, held):
                continue
            key = Key(obj.metadata.namespace, held.metadata.name)
            await drop_object(self.client, InClusterIPPool, key, uid=held.metadata.uid)


def _owns(obj: ClusterIPAM, pool: InClusterIPPool) -> bool:
    return any(each.uid == obj.metadata.uid for each in pool.metadata.owner_references)


def _owners(pool: Any) -> Iterable[Key]:
    return [
        Key(pool.metadata.namespace, each.name) for each in pool.metadata.owner_references if each.kind == "ClusterIPAM"
    ]


def _render(obj: ClusterIPAM, key: Key, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"{POOL_GROUP}/v1alpha2",
        "kind": POOL_KIND,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": dict(MANAGED),
            "ownerReferences": [owner_reference(obj, controller=True)],
        },
        "spec": spec,
    }


def install(setup: Setup) -> None:
    setup.manager.add(IpamReconciler(setup).controller)
