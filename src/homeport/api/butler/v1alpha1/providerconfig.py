"""ProviderConfig: an infrastructure that clusters can be made on, and how to log in there."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    Block,
    LocalRef,
    Positive,
    ProviderType,
    SecretRef,
    Text,
)
from homeport.api.field import Conditions, Long, Port, Quantity, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Pattern, Required


class EntityRef(Model):
    """An entity of Prism Central, by its name or its UUID."""

    name: str = ""
    uuid: str = ""


class PrismCentral(Model):
    """Where Prism Central answers."""

    address: str = ""
    port: Port | None = None
    insecure: bool | None = None


class NutanixEntities(Model):
    """Entities of Prism Central that VMs use, each by name or by UUID."""

    cluster: EntityRef | None = None
    cluster_uuid: str = msgspec.field(default="", name="clusterUUID")
    subnet: EntityRef | None = None
    subnet_uuid: str = msgspec.field(default="", name="subnetUUID")
    image: EntityRef | None = None
    image_uuid: str = msgspec.field(default="", name="imageUUID")
    storage_container: EntityRef | None = None
    storage_container_uuid: str = msgspec.field(default="", name="storageContainerUUID")


class HarvesterNames(Model):
    """Objects of Harvester that VMs use."""

    namespace: str = ""
    network_name: str = ""
    image_name: str = ""
    storage_class_name: str = ""


class NutanixPart(NutanixEntities):
    """A Nutanix site: Prism Central and the entities that VMs use."""

    credentials_ref: SecretRef | None = None
    prism_central: PrismCentral | None = None
    endpoint: Annotated[str, Pattern("^https?://")] = ""
    port: Port | None = None
    insecure: bool | None = None


class HarvesterPart(HarvesterNames):
    """A Harvester site: the namespace, network, image and storage that VMs use."""

    credentials_ref: SecretRef | None = None
    endpoint: str = ""


class ProviderScope(Model):
    """Which teams may use the ProviderConfig: all of them, or one team."""

    type: Annotated[str, Enum(("platform", "team"))] = ""
    team_ref: LocalRef | None = None


class PoolPriority(Model):
    """A NetworkPool that feeds the provider's clusters."""

    name: Required[Text] = ""
    priority: int = 0


class ProviderLoadBalancer(Model):
    """How many addresses for load balancers a tenant cluster gets."""

    default_pool_size: Positive | None = None
    allocation_mode: Annotated[str, Enum(("static", "elastic"))] = ""
    initial_pool_size: Positive | None = None
    growth_increment: Positive | None = None


class AddressQuota(Model):
    """The most addresses that one tenant cluster may have."""

    max_node_ips: Positive | None = msgspec.field(default=None, name="maxNodeIPs")
    max_load_balancer_ips: Positive | None = msgspec.field(default=None, name="maxLoadBalancerIPs")


class ProviderNetwork(Model):
    """Where the clusters of this provider get their addresses."""

    mode: Annotated[str, Enum(("ipam", "cloud"))] = ""
    pool_refs: Annotated[list[PoolPriority], ListType("atomic")] = []
    subnet: str = ""
    gateway: str = ""
    dns_servers: list[str] = []
    time_servers: list[str] = []
    load_balancer: ProviderLoadBalancer | None = None
    quota_per_tenant: AddressQuota | None = None


class ProviderLimits(Model):
    """The most that one team may have on this provider."""

    max_clusters_per_team: Positive | None = None
    max_nodes_per_team: Positive | None = None


class ProviderConfigSpec(Model):
    """The provider, its credentials, and who may use it."""

    provider: ProviderType = ""
    type: ProviderType = ""
    credentials_ref: SecretRef | None = None
    nutanix: NutanixPart | None = None
    harvester: HarvesterPart | None = None
    proxmox: Block | None = None
    azure: Block | None = None
    aws: Block | None = None
    gcp: Block | None = None
    scope: ProviderScope | None = None
    network: ProviderNetwork | None = None
    limits: ProviderLimits | None = None


class ProviderCapacity(Model):
    """What is still free at the provider."""

    available_ips: int | None = msgspec.field(default=None, name="availableIPs")
    estimated_tenants: int | None = None
    cpu: Quantity = ""
    memory: Quantity = ""
    storage: Quantity = ""


class ResolvedReference(Model):
    """A name of the spec, and the entity that it stands for."""

    field: Required[str] = ""
    name: str = ""
    id: str = ""
    candidates: list[str] = []


class ProviderImage(Model):
    """An image of the provider, and the operating system that it holds."""

    name: Required[str] = ""
    id: str = ""
    os: str = ""


class ProviderConfigStatus(Model):
    """Result of the last probe of the provider."""

    conditions: Conditions = []
    observed_generation: Long = 0
    provider: str = ""
    ready: bool = False
    validated: bool = False
    endpoint: str = ""
    last_validation_time: Time | None = None
    last_probe_time: Time | None = None
    provider_version: str = ""
    capacity: ProviderCapacity | None = None
    resolved: Annotated[list[ResolvedReference], ListType("map", ("field",))] = []
    images: list[ProviderImage] = []
    credentials_version: str = ""


@resource(GROUP, VERSION, "ProviderConfig", "providerconfigs")
class ProviderConfig(Object):
    """A ProviderConfig is an infrastructure that tenant clusters and machines can be made on."""

    spec: Required[ProviderConfigSpec] = msgspec.field(default_factory=ProviderConfigSpec)
    status: ProviderConfigStatus = msgspec.field(default_factory=ProviderConfigStatus)
