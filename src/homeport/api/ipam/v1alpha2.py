"""Pools of addresses that are kept as objects: no other system has to be asked."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Format, Range, Required

GROUP = "ipam.cluster.x-k8s.io"

Amount = Annotated[int, Format("")]


class PoolSpec(Model):
    """Addresses to give out: single ones, ranges (FIRST-LAST) and networks in CIDR form, of one family."""

    addresses: Required[list[str]] = []
    prefix: Required[Annotated[int, Range(0, 128), Format("")]] = 0
    gateway: str = ""
    allocate_reserved_addresses: bool = msgspec.field(default=False, name="allocateReservedIPAddresses")
    excluded_addresses: list[str] = []
    address_reuse_grace_period_seconds: Annotated[int, Range(0)] | None = None


class PoolUsage(Model):
    """How many addresses there are; numbers that no client could read are shown as the largest that it can."""

    total: Required[Amount] = 0
    free: Required[Amount] = 0
    used: Required[Amount] = 0
    out_of_range: Required[Amount] = 0


class PoolStatus(Model):
    """What is left of the pool."""

    addresses: PoolUsage | None = msgspec.field(default=None, name="ipAddresses")


@resource(GROUP, "v1alpha2", "InClusterIPPool", "inclusterippools")
class InClusterIPPool(Object):
    """An InClusterIPPool gives IP addresses to claims of the same namespace."""

    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)
    status: PoolStatus = msgspec.field(default_factory=PoolStatus)


@resource(GROUP, "v1alpha2", "GlobalInClusterIPPool", "globalinclusterippools", namespaced=False)
class GlobalInClusterIPPool(Object):
    """A GlobalInClusterIPPool gives IP addresses to claims of any namespace."""

    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)
    status: PoolStatus = msgspec.field(default_factory=PoolStatus)
