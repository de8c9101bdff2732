"""Types."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from homeport.api.field import Conditions, Kind, Name, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Mark, Range, Required, Size


class IPPoolReference(Model):
    api_group: Required[Name] = ""
    kind: Required[Kind] = ""
    name: Required[Name] = ""


class IPAddressClaimSpec(Model):
    cluster_name: Annotated[str, Size(1, 63)] = ""
    pool_ref: Required[IPPoolReference | None] = None


class IPAddressReference(Model):
    name: Required[Name] = ""


class IPAddressClaimV1Beta1DeprecatedStatus(Model):
    conditions: list[OldCondition] = []


class IPAddressClaimDeprecatedStatus(Model):
    v1beta1: IPAddressClaimV1Beta1DeprecatedStatus = msgspec.field(
        default_factory=IPAddressClaimV1Beta1DeprecatedStatus
    )


class IPAddressClaimStatus(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1),)

    address_ref: IPAddressReference | None = None
    conditions: Conditions = []
    deprecated: IPAddressClaimDeprecatedStatus = msgspec.field(default_factory=IPAddressClaimDeprecatedStatus)


@resource("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim", "ipaddressclaims")
class IPAddressClaim(Object):
    spec: Required[IPAddressClaimSpec] = msgspec.field(default_factory=IPAddressClaimSpec)
    status: IPAddressClaimStatus = msgspec.field(default_factory=IPAddressClaimStatus)


class IPAddressClaimReference(Model):
    name: Required[Name] = ""


class IPAddressSpec(Model):
    address: Required[Annotated[str, Size(1, 39)]] = ""
    claim_ref: Required[IPAddressClaimReference | None] = None
    gateway: Annotated[str, Size(1, 39)] = ""
    pool_ref: Required[IPPoolReference | None] = None
    prefix: Required[Annotated[int, Range(0, 128)] | None] = None


@resource("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress", "ipaddresses")
class IPAddress(Object):
    spec: Required[IPAddressSpec] = msgspec.field(default_factory=IPAddressSpec)
