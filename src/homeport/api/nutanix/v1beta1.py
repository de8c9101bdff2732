"""Kinds of the Nutanix provider, as their users know them. One version, which serves both contracts of Cluster API.

References (`image`, `cluster`, `subnet`, `project`, ...) are `{type: name|uuid, name|uuid}`; a plain string in their
place and the other spellings that are about are turned into that form when an object is admitted.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.cluster.v1beta2 import MachineAddress
from homeport.api.core import v1 as core
from homeport.api.field import Raw
from homeport.api.infrastructure import (
    AnyConditions,
    ContractStatus,
    InfraStatus,
    MachineTemplateStatus,
    TemplateResource,
)
from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Enum, ListType, Loose, Needed, Pattern, Range, Required, Size

GROUP = "infrastructure.cluster.x-k8s.io"

Quantity = Annotated[str | int, Needed()]
DomainName = Annotated[str, Size(1, 64), Pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]


class Identifier(Model):
    """Something in Prism Central, by name or by UUID."""

    type: Annotated[str, Enum(("uuid", "name"))] = ""
    uuid: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        return repr(self.name) if self.type == "name" else str(self.uuid)


LooseIdentifier = Annotated[Identifier | None, Loose()]
LooseIdentifiers = Annotated[list[Identifier], Loose()]


class Category(Model):
    key: str = ""
    value: str = ""


class Gpu(Model):
    type: Annotated[str, Needed(), Enum(("deviceID", "name"))] = ""
    device_id: int | None = None
    name: str | None = None


class DeviceProperties(Model):
    device_type: Annotated[str, Enum(("Disk", "CDRom")), Default("Disk")] = "Disk"
    adapter_type: Annotated[str, Enum(("SCSI", "IDE", "PCI", "SATA", "SPAPR"))] = ""
    device_index: Annotated[int, Range(0)] = 0


class StorageConfig(Model):
    disk_mode: Annotated[str, Enum(("Standard", "Flash")), Default("Standard")] = "Standard"
    storage_container: LooseIdentifier = None


class DataDisk(Model):
    disk_size: Quantity = ""
    device_properties: DeviceProperties | None = None
    storage_config: StorageConfig | None = None
    data_source: LooseIdentifier = None


class ImageLookup(Model):
    format: str | None = None
    base_os: Annotated[str, Needed(), Size(1)] = msgspec.field(default="", name="baseOS")


class ObjectReference(core.ObjectReference):
    """A Secret with user data, or an Image to boot from."""

    __schema__ = ()


class MachineSpec(Model):
    provider_id: str = ""
    vcpus_per_socket: Annotated[int, Needed(), Range(1)] = 1
    vcpu_sockets: Annotated[int, Needed(), Range(1)] = 1
    memory_size: Quantity = ""
    system_disk_size: Quantity = ""
    image: LooseIdentifier = None
    image_lookup: ImageLookup | None = None
    cluster: LooseIdentifier = None
    subnet: LooseIdentifiers = []
    subnets: LooseIdentifiers = []
    additional_categories: list[Category] = []
    categories: list[Category] = []
    project: LooseIdentifier = None
    boot_type: Annotated[str, Enum(("legacy", "uefi"))] = ""
    data_disks: list[DataDisk] = []
    bootstrap_ref: ObjectReference | None = None
    gpus: list[Gpu] = []
    # For the network cards in the order of the subnets; those that are left get theirs as the subnet gives it.
    addresses_from_pools: list[IPPoolReference] = []


class TaskRef(Model):
    """What goes on at Prism Central, so that whoever comes next can go on from there."""

    operation: str = ""
    id: str = ""


class MachineStatus(InfraStatus):
    addresses: list[MachineAddress] = []
    vm_uuid: str = msgspec.field(default="", name="vmUUID")
    node_ref: Raw = None
    task: TaskRef | None = None
    conditions: AnyConditions = []
    failure_reason: str | None = None
    failure_message: str | None = None
    failure_domain: str | None = None
    v1beta2: ContractStatus = msgspec.field(default_factory=ContractStatus)


@resource(GROUP, "v1beta1", "NutanixMachine", "nutanixmachines")
class NutanixMachine(Object):
    """A NutanixMachine is a virtual machine on Nutanix AHV that becomes a Kubernetes Node."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


class MachineTemplateResource(TemplateResource):
    spec: Required[MachineSpec] = msgspec.field(default_factory=MachineSpec)


class MachineTemplateSpec(Model):
    template: Required[MachineTemplateResource] = msgspec.field(default_factory=MachineTemplateResource)


@resource(GROUP, "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates")
class NutanixMachineTemplate(Object):
    """A NutanixMachineTemplate is the template of the VMs of a control plane or MachineDeployment."""

    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)
    status: MachineTemplateStatus = msgspec.field(default_factory=MachineTemplateStatus)


class Endpoint(Model):
    host: Annotated[str, Size(None, 512)] = ""
    port: int = 0


class CredentialRef(Model):
    kind: Annotated[str, Enum(("Secret",)), Default("Secret")] = "Secret"
    name: Annotated[str, Needed(), Size(1)] = ""
    namespace: str = ""


class TrustBundle(Model):
    kind: Annotated[str, Needed(), Enum(("String", "ConfigMap"))] = ""
    data: str = ""
    name: str = ""
    namespace: str = ""


class PrismCentral(Model):
    address: Annotated[str, Needed(), Size(1, 256)] = ""
    port: Annotated[int, Range(1, 65535), Default(9440)] = 9440
    insecure: bool = False
    credential_ref: CredentialRef | None = None
    additional_trust_bundle: TrustBundle | None = None


class InlineFailureDomain(Model):
    """Spelled out on the cluster itself; upstream calls this form deprecated."""

    name: Annotated[DomainName, Needed()] = ""
    cluster: LooseIdentifier = None
    subnets: LooseIdentifiers = []
    control_plane: Annotated[bool, Default(True)] = True


class LocalRef(Model):
    name: Annotated[str, Needed(), Size(1)] = ""


class ClusterSpec(Model):
    control_plane_endpoint: Endpoint = msgspec.field(default_factory=Endpoint)
    prism_central: PrismCentral | None = None
    failure_domains: Annotated[list[InlineFailureDomain], ListType("map", ("name",))] = []
    control_plane_failure_domains: Annotated[list[LocalRef], ListType("map", ("name",))] = []


class ClusterStatus(InfraStatus):
    failure_domains: Annotated[dict[str, Any], Loose()] = {}
    conditions: AnyConditions = []
    failure_reason: str | None = None
    failure_message: str | None = None
    v1beta2: ContractStatus = msgspec.field(default_factory=ContractStatus)


@resource(GROUP, "v1beta1", "NutanixCluster", "nutanixclusters")
class NutanixCluster(Object):
    """A NutanixCluster describes where a cluster runs: Prism Central, credentials, failure domains and endpoint."""

    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


class ClusterTemplateResource(TemplateResource):
    spec: Required[ClusterSpec] = msgspec.field(default_factory=ClusterSpec)


class ClusterTemplateSpec(Model):
    template: Required[ClusterTemplateResource] = msgspec.field(default_factory=ClusterTemplateResource)


@resource(GROUP, "v1beta1", "NutanixClusterTemplate", "nutanixclustertemplates")
class NutanixClusterTemplate(Object):
    """A NutanixClusterTemplate is the template of the NutanixClusters of a ClusterClass."""

    spec: ClusterTemplateSpec = msgspec.field(default_factory=ClusterTemplateSpec)


class FailureDomainSpec(Model):
    prism_element_cluster: LooseIdentifier = None
    subnets: LooseIdentifiers = []


class FailureDomainStatus(Model):
    conditions: AnyConditions = []
    v1beta2: ContractStatus = msgspec.field(default_factory=ContractStatus)


@resource(GROUP, "v1beta1", "NutanixFailureDomain", "nutanixfailuredomains")
class NutanixFailureDomain(Object):
    """A NutanixFailureDomain is a Prism Element cluster with subnets. Machines in it may fail together."""

    spec: FailureDomainSpec = msgspec.field(default_factory=FailureDomainSpec)
    status: FailureDomainStatus = msgspec.field(default_factory=FailureDomainStatus)
