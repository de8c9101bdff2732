"""Kinds of the KubeVirt provider, as their users know them. One version, which serves both contracts of Cluster API.

`virtualMachineTemplate` is a KubeVirt VirtualMachine: it goes to the infrastructure cluster as it is written, and
admission checks the parts that Homeport reads. Upstream does not have `bootDisk`, `dataDisks`, `keyPairs`,
`userDataSource`, `addressesFromPools` and `controlPlaneLoadBalancer`; all of these are optional.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.cluster.v1beta2 import MachineAddress
from homeport.api.core import v1 as core
from homeport.api.infrastructure import (
    AnyConditions,
    ContractStatus,
    InfraStatus,
    MachineTemplateStatus,
    TemplateResource,
)
from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import (
    Default,
    Enum,
    ListType,
    Needed,
    Pattern,
    Preserve,
    Range,
    Required,
    Shape,
    Size,
)

GROUP = "infrastructure.cluster.x-k8s.io"

Preserved = Annotated[dict[str, Any], Preserve()]
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# `namespace/name`, or a name in the namespace of the VM. Images may be given by display name, which has more letters.
ObjectName = Annotated[str, Size(1, 317), Pattern(rf"^({_LABEL}/)?[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$")]


FailureDomain = Annotated[
    dict[str, Any],
    Shape(
        "FailureDomain",
        (
            ("name", Required[Annotated[str, Size(1, 256)]]),
            ("controlPlane", bool),
            ("attributes", dict[str, str]),
        ),
    ),
]


class ObjectReference(core.ObjectReference):
    """A Secret, by name. The other fields of a reference are kept and not read."""


class VirtualMachineTemplate(Model):
    """A KubeVirt VirtualMachine: its metadata and spec."""

    metadata: Preserved = {}
    spec: Preserved = {}


class BootDisk(Model):
    image: Annotated[ObjectName, Needed()] = ""
    size: str | int = ""


class DataDisk(Model):
    name: Annotated[str, Needed(), Size(1, 20), Pattern(f"^{_LABEL}$")] = ""
    size: Annotated[str | int, Needed()] = ""
    storage_class_name: Annotated[str, Size(None, 253)] = ""


class BootstrapCheck(Model):
    check_strategy: Annotated[str, Enum(("none", "ssh")), Default("ssh")] = "ssh"


class MachineSpec(Model):
    provider_id: str = ""
    virtual_machine_template: VirtualMachineTemplate = msgspec.field(default_factory=VirtualMachineTemplate)
    virtual_machine_bootstrap_check: BootstrapCheck = msgspec.field(default_factory=BootstrapCheck)
    infra_cluster_secret_ref: ObjectReference | None = None
    boot_disk: BootDisk | None = None
    data_disks: Annotated[list[DataDisk], ListType("map", ("name",))] = []
    key_pairs: list[ObjectName] = []
    user_data_source: Annotated[str, Enum(("", "NoCloud", "ConfigDrive"))] = ""
    # For the networks of the VM in their order; those that are left get their addresses as the network gives them.
    addresses_from_pools: list[IPPoolReference] = []


class MachineStatus(InfraStatus):
    load_balancer_configured: bool | None = None
    addresses: list[MachineAddress] = []
    conditions: AnyConditions = []
    nodeupdated: bool | None = None
    failure_reason: str | None = None
    failure_message: str | None = None
    failure_domain: str | None = None
    v1beta2: ContractStatus = msgspec.field(default_factory=ContractStatus)


@resource(GROUP, "v1alpha1", "KubevirtMachine", "kubevirtmachines")
class KubevirtMachine(Object):
    """A KubevirtMachine is a virtual machine on Harvester or KubeVirt that becomes a Kubernetes Node."""

    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


class MachineTemplateResource(TemplateResource):
    spec: Required[MachineSpec] = msgspec.field(default_factory=MachineSpec)


class MachineTemplateSpec(Model):
    template: Required[MachineTemplateResource] = msgspec.field(default_factory=MachineTemplateResource)


@resource(GROUP, "v1alpha1", "KubevirtMachineTemplate", "kubevirtmachinetemplates")
class KubevirtMachineTemplate(Object):
    """A KubevirtMachineTemplate is the template of the VMs of a control plane or MachineDeployment."""

    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)
    status: MachineTemplateStatus = msgspec.field(default_factory=MachineTemplateStatus)


class Endpoint(Model):
    host: Annotated[str, Size(None, 512)] = ""
    port: Annotated[int, Range(0, 65535)] = 0


class ServiceSpec(Model):
    type: Annotated[str, Enum(("", "ClusterIP", "NodePort", "LoadBalancer"))] = ""


class ServiceTemplate(Model):
    """A Service in the infrastructure cluster, in front of the control plane's VMs."""

    metadata: Preserved = {}
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class LoadBalancer(Model):
    """A LoadBalancer of Harvester, in front of the control plane's VMs."""

    ipam: Annotated[str, Enum(("pool", "dhcp")), Default("pool")] = "pool"
    ip_pool: Annotated[str, Size(None, 253)] = ""


class SSHKeys(Model):
    config_ref: ObjectReference | None = None
    data_secret_name: str | None = None


class ClusterSpec(Model):
    control_plane_endpoint: Endpoint = msgspec.field(default_factory=Endpoint)
    control_plane_service_template: ServiceTemplate | None = None
    control_plane_load_balancer: LoadBalancer | None = None
    infra_cluster_secret_ref: ObjectReference | None = None
    ssh_keys: SSHKeys | None = None


class ClusterStatus(InfraStatus):
    failure_domains: Annotated[list[FailureDomain], ListType("map", ("name",))] = []
    conditions: AnyConditions = []
    v1beta2: ContractStatus = msgspec.field(default_factory=ContractStatus)


@resource(GROUP, "v1alpha1", "KubevirtCluster", "kubevirtclusters")
class KubevirtCluster(Object):
    """A KubevirtCluster describes where a cluster runs: the Harvester or KubeVirt cluster, and the endpoint."""

    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


class ClusterTemplateResource(TemplateResource):
    spec: Required[ClusterSpec] = msgspec.field(default_factory=ClusterSpec)


class ClusterTemplateSpec(Model):
    template: Required[ClusterTemplateResource] = msgspec.field(default_factory=ClusterTemplateResource)


@resource(GROUP, "v1alpha1", "KubevirtClusterTemplate", "kubevirtclustertemplates")
class KubevirtClusterTemplate(Object):
    """A KubevirtClusterTemplate is the template of the KubevirtClusters of a ClusterClass."""

    spec: ClusterTemplateSpec = msgspec.field(default_factory=ClusterTemplateSpec)
