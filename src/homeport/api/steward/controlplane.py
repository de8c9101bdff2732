"""Cluster API control planes that are TenantControlPlanes: the kinds of Steward's Cluster API provider.

One version serves both contracts: what the newer one adds stands beside what the older one reads.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Needed, Range, Required, Rule, Size
from homeport.api.steward.part import (
    REGISTRY,
    Addons,
    AdmissionController,
    ControllerType,
    ImageOverride,
    Kubelet,
    Metadata,
    Part,
    Preserved,
    Resources,
    ServiceType,
    Strategy,
    VolumeMount,
)

GROUP = "controlplane.cluster.x-k8s.io"

_UNCHANGED = "self == oldSelf"


class Program(Model):
    """A program of the control plane."""

    container_image_name: Annotated[str, Size(1)] = ""
    extra_args: list[str] = []
    extra_volume_mounts: list[VolumeMount] = []
    resources: Resources | None = None


class Kine(Model):
    extra_args: list[str] = []
    resources: Resources | None = None


class CoreDNS(ImageOverride):
    dns_service_ips: list[str] = msgspec.field(name="dnsServiceIPs", default=[])


class ControlPlaneAddons(Addons):
    core_dns: CoreDNS | None = None


class Endpoint(Model):
    host: Annotated[str, Needed(), Size(None, 512)] = ""
    port: Annotated[int, Needed(), Range(0, 65535)] = 0


class ExternalCluster(Model):
    """Another cluster, in which the Pods of the control plane run."""

    deployment_namespace: Annotated[str, Needed()] = ""
    kubeconfig_secret_key: Annotated[str, Needed(), Size(1)] = ""
    kubeconfig_secret_name: Annotated[str, Needed(), Size(1)] = ""
    kubeconfig_secret_namespace: str = ""


class DeploymentOptions(Model):
    additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    affinity: Preserved | None = None
    external_cluster_reference: ExternalCluster | None = None
    extra_containers: list[Part] = []
    extra_init_containers: list[Part] = []
    extra_volumes: list[Part] = []
    node_selector: dict[str, str] = {}
    pod_additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    runtime_class_name: str = ""
    service_account_name: str = ""
    strategy: Strategy | None = None
    tolerations: list[Part] = []
    topology_spread_constraints: list[Part] = []


class GatewayOptions(Model):
    extra_annotations: dict[str, str] = {}
    extra_labels: dict[str, str] = {}
    hostname: Annotated[str, Needed(), Size(1)] = ""
    parent_refs: list[Part] = []


class IngressOptions(Model):
    class_name: str = ""
    controller_type: ControllerType = ""
    extra_annotations: dict[str, str] = {}
    extra_labels: dict[str, str] = {}
    hostname: Annotated[str, Needed(), Size(1)] = ""


class LoadBalancerConfig(Model):
    load_balancer_class: Annotated[str, Size(1), Rule(_UNCHANGED, "loadBalancerClass is immutable")] = ""
    load_balancer_source_ranges: list[str] = []


_CONFIG = "has(self.loadBalancerConfig)"
_BALANCED = "self.serviceType == 'LoadBalancer'"


class Network(Model):
    __schema__ = (
        Rule(
            f"!{_CONFIG} || !has(self.loadBalancerConfig.loadBalancerSourceRanges) || "
            f"size(self.loadBalancerConfig.loadBalancerSourceRanges) == 0 || {_BALANCED}",
            "loadBalancerConfig.loadBalancerSourceRanges needs serviceType LoadBalancer",
        ),
        Rule(
            f"!{_CONFIG} || !has(self.loadBalancerConfig.loadBalancerClass) || {_BALANCED}",
            "loadBalancerConfig.loadBalancerClass needs serviceType LoadBalancer",
        ),
        Rule(
            f"!({_BALANCED}) || oldSelf.serviceType != 'LoadBalancer' || "
            f"({_CONFIG} && has(self.loadBalancerConfig.loadBalancerClass)) == "
            "(has(oldSelf.loadBalancerConfig) && has(oldSelf.loadBalancerConfig.loadBalancerClass))",
            "loadBalancerConfig.loadBalancerClass can't be added to or removed from an existing Service",
        ),
        Rule("!(has(self.ingress) && has(self.gateway))", "set either ingress or gateway, not both"),
    )

    cert_sans: list[str] = msgspec.field(name="certSANs", default=[])
    dns_service_ips: list[str] = msgspec.field(name="dnsServiceIPs", default=[])
    gateway: GatewayOptions | None = None
    ingress: IngressOptions | None = None
    load_balancer_config: LoadBalancerConfig | None = None
    service_address: str = ""
    service_annotations: dict[str, str] = {}
    service_labels: dict[str, str] = {}
    service_type: Annotated[ServiceType, Default("LoadBalancer")] = "LoadBalancer"


_KUBELET = {"cgroupfs": "systemd", "preferredAddressTypes": ["InternalIP", "ExternalIP", "Hostname"]}


class ControlPlaneFields(Model):
    """What a control plane and a template of one have in common."""

    addons: ControlPlaneAddons = msgspec.field(default_factory=ControlPlaneAddons)
    admission_controllers: list[AdmissionController] = []
    api_server: Program = msgspec.field(default_factory=Program)
    controller_manager: Program = msgspec.field(default_factory=Program)
    data_store_name: str = ""
    data_store_schema: str = ""
    data_store_username: Annotated[str, Rule(_UNCHANGED, "dataStoreUsername is immutable")] = ""
    deployment: DeploymentOptions = msgspec.field(default_factory=DeploymentOptions)
    kine: Kine = msgspec.field(default_factory=Kine)
    kubelet: Annotated[Kubelet, Default(_KUBELET)] = msgspec.field(
        default_factory=lambda: msgspec.convert(_KUBELET, Kubelet)
    )
    network: Annotated[Network, Default({"serviceType": "LoadBalancer"})] = msgspec.field(default_factory=Network)
    registry: Annotated[str, Default(REGISTRY)] = REGISTRY
    scheduler: Program = msgspec.field(default_factory=Program)


class ControlPlaneSpec(ControlPlaneFields):
    control_plane_endpoint: Endpoint | None = None
    replicas: Annotated[int, Default(2), Range(0)] = 2
    version: Annotated[str, Needed()] = ""


class Initialization(Model):
    control_plane_initialized: bool | None = None


class ControlPlaneStatus(Model):
    """`initialization`, `availableReplicas` and `upToDateReplicas` are for the v1beta2 contract.

    Upstream requires some of the others: a status that says less is accepted here.
    """

    available_replicas: int | None = None
    conditions: Conditions = []
    external_managed_control_plane: Annotated[bool, Default(True)] = True
    failure_message: str | None = None
    failure_reason: str | None = None
    initialization: Initialization = msgspec.field(default_factory=Initialization)
    initialized: bool = False
    ready: bool = False
    ready_replicas: int = 0
    replicas: int = 0
    selector: str = ""
    unavailable_replicas: int = 0
    up_to_date_replicas: int | None = None
    updated_replicas: int = 0
    version: str = ""


class HostedControlPlane(Object):
    """What such a control plane is, whatever its kind is called."""

    spec: ControlPlaneSpec = msgspec.field(default_factory=ControlPlaneSpec)
    status: ControlPlaneStatus = msgspec.field(default_factory=ControlPlaneStatus)


@resource(GROUP, "v1alpha1", "StewardControlPlane", "stewardcontrolplanes")
class StewardControlPlane(HostedControlPlane):
    """A StewardControlPlane is the control plane of a Cluster that runs as Pods: it makes a TenantControlPlane."""


class TemplateMeta(Model):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ControlPlaneTemplateResource(Model):
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: Required[ControlPlaneFields] = msgspec.field(default_factory=ControlPlaneFields)


class ControlPlaneTemplateSpec(Model):
    template: Required[ControlPlaneTemplateResource] = msgspec.field(default_factory=ControlPlaneTemplateResource)


class HostedControlPlaneTemplate(Object):
    spec: ControlPlaneTemplateSpec = msgspec.field(default_factory=ControlPlaneTemplateSpec)


@resource(GROUP, "v1alpha1", "StewardControlPlaneTemplate", "stewardcontrolplanetemplates")
class StewardControlPlaneTemplate(HostedControlPlaneTemplate):
    """A StewardControlPlaneTemplate is the template of the StewardControlPlanes of a ClusterClass."""
