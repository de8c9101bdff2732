"""Claims for IP addresses, and the addresses given to them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, DeprecatedConditions, Kind, Name, NonEmpty
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Range, Required, Size


class IPPoolReference(Model):
    """A pool of addresses, of whatever kind."""

    api_group: Required[Name] = ""
    kind: Required[Kind] = ""
    name: Required[Name] = ""


class IPAddressClaimSpec(Model):
    """The pool that an address is wanted of."""

    cluster_name: Annotated[str, Size(1, 63)] = ""
    pool_ref: Required[IPPoolReference | None] = None


class IPAddressReference(Model):
    """The address that a claim was given."""

    name: Required[Name] = ""


class IPAddressClaimStatus(NonEmpty):
    """The address that was given."""

    address_ref: IPAddressReference | None = None
    conditions: Conditions = []
    deprecated: DeprecatedConditions = msgspec.field(default_factory=DeprecatedConditions)


@resource("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim", "ipaddressclaims")
class IPAddressClaim(Object):
    """An IPAddressClaim requests an IP address from a pool."""

    spec: Required[IPAddressClaimSpec] = msgspec.field(default_factory=IPAddressClaimSpec)
    status: IPAddressClaimStatus = msgspec.field(default_factory=IPAddressClaimStatus)


class IPAddressClaimReference(Model):
    """The claim that an address was given to."""

    name: Required[Name] = ""


class IPAddressSpec(Model):
    """The address, its network, and where it comes from."""

    address: Required[Annotated[str, Size(1, 39)]] = ""
    claim_ref: Required[IPAddressClaimReference | None] = None
    gateway: Annotated[str, Size(1, 39)] = ""
    pool_ref: Required[IPPoolReference | None] = None
    prefix: Required[Annotated[int, Range(0, 128)] | None] = None


@resource("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress", "ipaddresses")
class IPAddress(Object):
    """An IPAddress is an address that a pool gave to a claim."""

    spec: Required[IPAddressSpec] = msgspec.field(default_factory=IPAddressSpec)
