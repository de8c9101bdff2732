"""Addresses of a tenant cluster: one for its API server, and a range for its load balancers.

The API server's comes from the platform's own pool (spec.platform.metalLBPool of the ButlerConfig), or from the plane's
load balancer where there is none. Load balancers have a range of the TenantCluster's own, or one of the provider's
NetworkPools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address

from homeport.api.butler.v1alpha1 import NetworkPool
from homeport.api.butler.v1alpha1.part import LocalRef
from homeport.api.butler.v1alpha1.providerconfig import ProviderNetwork
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.name import MANAGED_BY, MANAGED_BY_LABEL, PLATFORM_POOL, SYSTEM_NAMESPACE
from homeport.platforms.butler.network.claim import ENDPOINT, LOAD_BALANCER, Claim, Claims
from homeport.platforms.butler.normal.config import ConfigModel
from homeport.platforms.butler.normal.tenant import TenantModel
from homeport.platforms.butler.tenant import state
from homeport.platforms.butler.tenant.scope import TenantScope
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.applier import Applier
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.ranges import ServiceRanges

_DEFAULT_SIZE = 8  # addresses for load balancers, unless the provider says otherwise
_PASSING = ("Allocating", "Releasing")  # nobody has to do anything
_OWNER = "butler"


class Addresses:
    def __init__(
        self,
        claims: Claims,
        applier: Applier,
        settings: Callable[[], ConfigModel],
        ranges: ServiceRanges,
        clock: Clock,
    ) -> None:
        self._claims = claims
        self._applier = applier
        self._settings = settings
        self._ranges = ranges
        self._clock = clock

    # -- claiming ----------------------------------------------------------------------------------------------

    async def claim(self, scope: TenantScope) -> Wait | None:
        """A phase: what the cluster needs is allocated before it is created."""
        wait = await self._claim_endpoint(scope) or await self._claim_range(scope)
        if wait is not None:
            return wait
        scope.note(Finding(state.NETWORK, message=_said(scope)), rfc3339(self._clock.now()))
        return None

    async def _claim_endpoint(self, scope: TenantScope) -> Wait | None:
        assert scope.model is not None
        pools, current = await self._endpoint_pools(scope), _current(scope)
        known = _is_balanced(scope.model) and self._claims.known(scope.key, ENDPOINT)
        if not pools and not known:
            if scope.model.hosted:
                return None
            text = (
                "spec.controlPlane.type standalone needs an address for the API server: set spec.platform.metalLBPool "
                "of ButlerConfig butler, or spec.network of the ProviderConfig to mode ipam with poolRefs"
            )
            return self._waits(scope, Claim("", reason="NoEndpointPool", message=text))
        if current and not known and scope.model.hosted and not self._is_ours(current):
            return (
                None  # workers and kubeconfigs know the API server by this address: it stays, whatever pools there are
            )
        found = await self._claims.hold(scope.key, ENDPOINT, pools, 1, pinned=current)
        scope.object.status.ip_allocation_ref = LocalRef(name=found.name)
        if not found.addresses:
            return self._waits(scope, found)
        scope.endpoint = str(found.addresses)
        return None

    def _is_ours(self, address: str) -> bool:
        try:
            return ip_address(address) in self._settings().load_balancer
        except ValueError:
            return False  # a name, of a load balancer elsewhere

    async def _endpoint_pools(self, scope: TenantScope) -> Sequence[str]:
        """A hosted control plane's address is one of the platform's, that of machines one of their own network."""
        model, provider = scope.model, scope.provider
        assert model is not None
        assert provider is not None
        if not model.hosted and provider.model.network.mode == "ipam":
            return _pools(provider.model.network)
        if not _is_balanced(model):
            return ()
        platform = self._settings().load_balancer
        self._ranges.set(_OWNER, platform)
        if not platform:
            return ()
        await self._applier.hold(scope.key, _platform_pool(platform), NetworkPool.__resource__)
        return (PLATFORM_POOL,)

    async def _claim_range(self, scope: TenantScope) -> Wait | None:
        model, provider = scope.model, scope.provider
        assert model is not None
        assert provider is not None
        network = provider.model.network
        if model.load_balancer or network.mode != "ipam":
            scope.addresses = _without(model.load_balancer, scope.endpoint)
            if self._claims.known(scope.key, LOAD_BALANCER):
                await self._claims.release(scope.key, LOAD_BALANCER)
            return None
        found = await self._claims.hold(scope.key, LOAD_BALANCER, _pools(network), _size(model.lb_pool_size, network))
        scope.object.status.lb_allocation_ref = LocalRef(name=found.name)
        if not found.addresses:
            return self._waits(scope, found)
        scope.addresses = found.addresses
        return None

    def _waits(self, scope: TenantScope, claim: Claim) -> Wait:
        finding = Finding(state.NETWORK, claim.reason, claim.message)
        scope.note(finding, rfc3339(self._clock.now()))
        return Wait(claim.reason, claim.message, warning=claim.reason not in _PASSING)

    # -- giving back -------------------------------------------------------------------------------------------

    async def release(self, scope: TenantScope) -> Wait | None:
        """A phase of the deletion, when nothing of the cluster uses the addresses any more."""
        left = [each for each in (ENDPOINT, LOAD_BALANCER) if not await self._claims.release(scope.key, each)]
        if left:
            return Wait("ReleasingAddresses", "the addresses of the cluster are given back to their pool", after=5.0)
        return None


def _current(scope: TenantScope) -> str:
    """The address that the API server of the cluster has already; '' if none."""
    cluster = scope.children.cluster
    endpoint = cluster.spec.control_plane_endpoint if cluster is not None else None
    return endpoint.host if endpoint is not None else ""


def _is_balanced(model: TenantModel) -> bool:
    """Whether an address of its own leads to the API server."""
    return not model.hosted or (model.control_plane.service_type or "LoadBalancer") == "LoadBalancer"


def _pools(network: ProviderNetwork) -> list[str]:
    """Those with the lowest number first; equal ones in their order."""
    return [each.name for each in sorted(network.pool_refs, key=lambda each: each.priority)]


def _size(asked: int | None, network: ProviderNetwork) -> int:
    given = network.load_balancer
    default = given.default_pool_size if given is not None else None
    wanted = asked or default or _DEFAULT_SIZE
    quota = network.quota_per_tenant.max_load_balancer_ips if network.quota_per_tenant is not None else None
    return min(wanted, quota) if quota else wanted


def _without(pool: AddressSet, endpoint: str) -> AddressSet:
    """MetalLB must not give away the address of the API server."""
    return pool.without(AddressSet.parse([endpoint])) if pool and endpoint else pool


def _said(scope: TenantScope) -> str:
    model = scope.model
    assert model is not None
    texts = []
    if scope.endpoint:
        texts.append(f"the API server has {scope.endpoint}")
    if scope.addresses:
        texts.append(f"load balancers have {scope.addresses}")
    else:
        texts.append(
            "no addresses for load balancers are set: set spec.addons.loadBalancer.addressPool, or spec.network of "
            "the ProviderConfig to mode ipam with poolRefs"
        )
    if model.load_balancer and scope.addresses != model.load_balancer:
        texts.append(f"{scope.endpoint} was left out of {model.load_balancer}")
    return "; ".join(texts)


def _platform_pool(addresses: AddressSet) -> dict[str, object]:
    at = NetworkPool.__resource__
    return {
        **at.type_meta,
        "metadata": {
            "name": PLATFORM_POOL,
            "namespace": SYSTEM_NAMESPACE,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY},
        },
        "spec": {"cidr": str(addresses)},
    }
