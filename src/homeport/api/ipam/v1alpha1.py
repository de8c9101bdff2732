"""Claims for IP addresses, the addresses given to them, and pools in their first form."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.core.v1 import LocalObjectReference, TypedLocalObjectReference
from homeport.api.field import OldCondition
from homeport.api.ipam.v1alpha2 import PoolStatus
from homeport.api.ipam.v1beta1 import IPAddressSpec
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Format, Range, Required


class IPAddressClaimSpec(Model):
    """The pool that an address is wanted of."""

    pool_ref: Required[TypedLocalObjectReference | None] = None


class IPAddressClaimStatus(Model):
    """The address that was given."""

    address_ref: LocalObjectReference | None = None
    conditions: list[OldCondition] = []


@resource("ipam.cluster.x-k8s.io", "v1alpha1", "IPAddressClaim", "ipaddressclaims")
class IPAddressClaim(Object):
    """An IPAddressClaim requests an IP address from a pool."""

    spec: IPAddressClaimSpec = msgspec.field(default_factory=IPAddressClaimSpec)
    status: IPAddressClaimStatus = msgspec.field(default_factory=IPAddressClaimStatus)


@resource("ipam.cluster.x-k8s.io", "v1alpha1", "IPAddress", "ipaddresses")
class IPAddress(Object):
    """An IPAddress is an address that a pool gave to a claim."""

    spec: IPAddressSpec = msgspec.field(default_factory=IPAddressSpec)


class PoolSpec(Model):
    """Addresses to give out: a subnet, a range within it, single addresses, or several of these, of one family."""

    addresses: list[str] = []
    subnet: str = ""
    start: str = ""
    end: str = ""
    prefix: Annotated[int, Range(0, 128), Format("")] = 0
    gateway: str = ""


@resource("ipam.cluster.x-k8s.io", "v1alpha1", "InClusterIPPool", "inclusterippools")
class InClusterIPPool(Object):
    """An InClusterIPPool gives IP addresses to claims of the same namespace."""

    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)
    status: PoolStatus = msgspec.field(default_factory=PoolStatus)


@resource("ipam.cluster.x-k8s.io", "v1alpha1", "GlobalInClusterIPPool", "globalinclusterippools", namespaced=False)
class GlobalInClusterIPPool(Object):
    """A GlobalInClusterIPPool gives IP addresses to claims of any namespace."""

    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)
    status: PoolStatus = msgspec.field(default_factory=PoolStatus)
