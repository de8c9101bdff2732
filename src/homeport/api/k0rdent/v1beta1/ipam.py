"""Addresses for clusters."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions
from homeport.api.k0rdent.v1beta1.part import GROUP, VERSION, Strings, Values, fixed_once_set, named
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, Required

PROVIDERS = ("in-cluster", "ipam-infoblox")


class AddressSpace(Model):
    """A network, and addresses of it that the cluster may use."""

    cidr: str = ""
    gateway: str = ""
    ip_addresses: Strings = []
    prefix: Annotated[int, Format("")] | None = None


class ClusterIPAMClaimSpec(Model):
    """Addresses that a cluster asks for."""

    provider: Required[Annotated[str, Enum(PROVIDERS)]] = ""
    cluster: Annotated[str, fixed_once_set("the cluster")] = ""
    cluster_ipam_ref: Annotated[str, fixed_once_set("the ClusterIPAM")] = named("", "clusterIPAMRef")
    node_network: AddressSpace | None = None
    cluster_network: AddressSpace | None = None
    external_network: AddressSpace | None = None


class ClusterIPAMClaimStatus(Model):
    """Whether the claim has its addresses."""

    bound: bool = False
    conditions: Conditions = []


@resource(GROUP, VERSION, "ClusterIPAMClaim", "clusteripamclaims")
class ClusterIPAMClaim(Object):
    """A ClusterIPAMClaim asks for addresses for a cluster."""

    spec: ClusterIPAMClaimSpec = msgspec.field(default_factory=ClusterIPAMClaimSpec)
    status: ClusterIPAMClaimStatus = msgspec.field(default_factory=ClusterIPAMClaimStatus)


class ClusterIPAMSpec(Model):
    """The claim that the addresses are for."""

    provider: Annotated[str, Enum(PROVIDERS)] = ""
    cluster_ipam_claim_ref: Annotated[str, fixed_once_set("the claim")] = named("", "clusterIPAMClaimRef")


class ProviderData(Model):
    """Values for the template of the cluster."""

    name: str = ""
    config: Values = {}
    ready: bool = False


class ClusterIPAMStatus(Model):
    """The addresses."""

    phase: Annotated[str, Enum(("Pending", "Bound"))] = ""
    provider_data: list[ProviderData] = []
    conditions: Conditions = []


@resource(GROUP, VERSION, "ClusterIPAM", "clusteripams")
class ClusterIPAM(Object):
    """A ClusterIPAM holds the addresses of a ClusterIPAMClaim."""

    spec: ClusterIPAMSpec = msgspec.field(default_factory=ClusterIPAMSpec)
    status: ClusterIPAMStatus = msgspec.field(default_factory=ClusterIPAMStatus)
