"""Claims for IP addresses, and the addresses given to them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.core.v1 import LocalObjectReference, TypedLocalObjectReference
from homeport.api.field import Conditions, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Format, Required, Size


class IPAddressClaimSpec(Model):
    """The pool that an address is wanted of."""

    cluster_name: Annotated[str, Size(1, 63)] = ""
    pool_ref: Required[TypedLocalObjectReference | None] = None


class IPAddressClaimV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []


class IPAddressClaimStatus(Model):
    """The address that was given."""

    address_ref: LocalObjectReference | None = None
    conditions: list[OldCondition] = []
    v1beta2: IPAddressClaimV1Beta2Status | None = None


@resource("ipam.cluster.x-k8s.io", "v1beta1", "IPAddressClaim", "ipaddressclaims")
class IPAddressClaim(Object):
    """An IPAddressClaim requests an IP address from a pool."""

    spec: IPAddressClaimSpec = msgspec.field(default_factory=IPAddressClaimSpec)
    status: IPAddressClaimStatus = msgspec.field(default_factory=IPAddressClaimStatus)


class IPAddressSpec(Model):
    """The address, its network, and where it comes from."""

    address: Required[Annotated[str, Size(1, 39)]] = ""
    claim_ref: Required[LocalObjectReference | None] = None
    gateway: Annotated[str, Size(1, 39)] = ""
    pool_ref: Required[TypedLocalObjectReference | None] = None
    prefix: Required[Annotated[int, Format("")]] = 0


@resource("ipam.cluster.x-k8s.io", "v1beta1", "IPAddress", "ipaddresses")
class IPAddress(Object):
    """An IPAddress is an address that a pool gave to a claim."""

    spec: IPAddressSpec = msgspec.field(default_factory=IPAddressSpec)
