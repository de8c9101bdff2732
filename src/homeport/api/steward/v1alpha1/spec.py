"""What a TenantControlPlane should be."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import IntOrString
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, Needed, Pattern, Range, Rule, Size
from homeport.api.steward.part import (
    ADMISSION_CONTROLLERS,
    REGISTRY,
    Addons,
    AdmissionController,
    ControllerType,
    Kubelet,
    Metadata,
    Part,
    Preserved,
    Resources,
    ServiceType,
    Strategy,
    VolumeMount,
)

UNCHANGED = "self == oldSelf"


class RegistrySettings(Model):
    api_server_image: Annotated[str, Default("kube-apiserver")] = "kube-apiserver"
    controller_manager_image: Annotated[str, Default("kube-controller-manager")] = "kube-controller-manager"
    registry: Annotated[str, Default(REGISTRY)] = REGISTRY
    scheduler_image: Annotated[str, Default("kube-scheduler")] = "kube-scheduler"
    tag_suffix: str = ""


_IMAGES = {
    "apiServerImage": "kube-apiserver",
    "controllerManagerImage": "kube-controller-manager",
    "registry": REGISTRY,
    "schedulerImage": "kube-scheduler",
}


class VolumeMounts(Model):
    api_server: list[VolumeMount] = []
    controller_manager: list[VolumeMount] = []
    scheduler: list[VolumeMount] = []


class ExtraArgs(Model):
    api_server: list[str] = []
    controller_manager: list[str] = []
    kine: list[str] = []
    scheduler: list[str] = []


class ComponentResources(Model):
    api_server: Resources | None = None
    controller_manager: Resources | None = None
    kine: Resources | None = None
    scheduler: Resources | None = None


# All new Pods first, then the old ones go: an upgrade never has fewer API servers than before.
BLUE_GREEN = {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}, "type": "RollingUpdate"}


class Deployment(Model):
    additional_containers: list[Part] = []
    additional_init_containers: list[Part] = []
    additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    additional_volume_mounts: VolumeMounts = msgspec.field(default_factory=VolumeMounts)
    additional_volumes: list[Part] = []
    affinity: Preserved | None = None
    extra_args: ExtraArgs = msgspec.field(default_factory=ExtraArgs)
    node_selector: dict[str, str] = {}
    pod_additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    registry_settings: Annotated[RegistrySettings, Default(_IMAGES)] = msgspec.field(default_factory=RegistrySettings)
    replicas: Annotated[int, Default(2), Range(0)] = 2
    resources: ComponentResources = msgspec.field(default_factory=ComponentResources)
    runtime_class_name: str = ""
    service_account_name: Annotated[str, Default("default")] = "default"
    strategy: Annotated[Strategy, Default(BLUE_GREEN)] = msgspec.field(
        default_factory=lambda: msgspec.convert(BLUE_GREEN, Strategy)
    )
    tolerations: list[Part] = []
    topology_spread_constraints: list[Part] = []


class Gateway(Model):
    additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    hostname: Annotated[
        str,
        Size(1, 253),
        Pattern(r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    ] = ""
    parent_refs: list[Part] = []


class Ingress(Model):
    additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    controller_type: ControllerType = ""
    hostname: str = ""
    ingress_class_name: str = ""


class ServicePort(Model):
    app_protocol: str | None = None
    name: Annotated[str, Needed()] = ""
    port: Annotated[int, Needed()] = 0
    protocol: Annotated[str, Enum(("TCP", "UDP", "SCTP")), Default("TCP")] = "TCP"
    target_port: Annotated[IntOrString, Needed()] = 0


class Service(Model):
    additional_metadata: Metadata = msgspec.field(default_factory=Metadata)
    additional_ports: list[ServicePort] = []
    service_type: Annotated[ServiceType, Needed()] = ""


class ControlPlane(Model):
    __schema__ = (Rule("!(has(self.ingress) && has(self.gateway))", "set either ingress or gateway, not both"),)

    deployment: Deployment = msgspec.field(default_factory=Deployment)
    gateway: Gateway | None = None
    ingress: Ingress | None = None
    service: Annotated[Service, Needed()] = msgspec.field(default_factory=Service)


class Kubernetes(Model):
    admission_controllers: Annotated[list[AdmissionController], Default(ADMISSION_CONTROLLERS)] = msgspec.field(
        default_factory=ADMISSION_CONTROLLERS.copy
    )
    kubelet: Annotated[Kubelet, Needed()] = msgspec.field(default_factory=Kubelet)
    version: Annotated[str, Needed()] = ""


class NetworkProfile(Model):
    address: str = ""
    allow_address_as_external_ip: bool | None = None
    cert_sans: list[str] = msgspec.field(name="certSANs", default=[])
    cluster_domain: Annotated[
        str, Default("cluster.local"), Pattern(r".*\..*"), Rule(UNCHANGED, "the cluster domain is immutable")
    ] = "cluster.local"
    dns_service_ips: list[str] = msgspec.field(name="dnsServiceIPs", default=[])
    load_balancer_class: Annotated[str, Size(1), Rule(UNCHANGED, "loadBalancerClass is immutable")] = ""
    load_balancer_source_ranges: list[str] = []
    pod_cidr: Annotated[str, Default("10.244.0.0/16")] = msgspec.field(name="podCidr", default="10.244.0.0/16")
    port: Annotated[int, Default(6443)] = 6443
    service_cidr: Annotated[str, Default("10.96.0.0/16")] = msgspec.field(name="serviceCidr", default="10.96.0.0/16")


class WritePermissions(Model):
    block_creation: bool | None = None
    block_deletion: bool | None = None
    block_update: bool | None = None

    @property
    def limited(self) -> bool:
        return bool(self.block_creation or self.block_deletion or self.block_update)


class DataStoreOverride(Model):
    data_store: str = ""
    resource: str = ""


_BALANCED = "self.controlPlane.service.serviceType == 'LoadBalancer'"


class TenantControlPlaneSpec(Model):
    __schema__ = (
        *(
            Rule(f"!has(oldSelf.{name}) || has(self.{name})", f"{name} can't be removed once it is set")
            for name in ("dataStore", "dataStoreSchema", "dataStoreUsername")
        ),
        Rule(
            "!has(self.networkProfile) || !has(self.networkProfile.loadBalancerSourceRanges) || "
            f"size(self.networkProfile.loadBalancerSourceRanges) == 0 || {_BALANCED}",
            "networkProfile.loadBalancerSourceRanges needs controlPlane.service.serviceType LoadBalancer",
        ),
        Rule(
            f"!has(self.networkProfile) || !has(self.networkProfile.loadBalancerClass) || {_BALANCED}",
            "networkProfile.loadBalancerClass needs controlPlane.service.serviceType LoadBalancer",
        ),
        Rule(
            f"!({_BALANCED}) || oldSelf.controlPlane.service.serviceType != 'LoadBalancer' || "
            "(has(self.networkProfile) && has(self.networkProfile.loadBalancerClass)) == "
            "(has(oldSelf.networkProfile) && has(oldSelf.networkProfile.loadBalancerClass))",
            "networkProfile.loadBalancerClass can't be added to or removed from an existing Service",
        ),
    )

    addons: Addons = msgspec.field(default_factory=Addons)
    control_plane: Annotated[ControlPlane, Needed()] = msgspec.field(default_factory=ControlPlane)
    data_store: str = ""
    data_store_overrides: list[DataStoreOverride] = []
    data_store_schema: Annotated[str, Rule(UNCHANGED, "dataStoreSchema is immutable")] = ""
    data_store_username: Annotated[str, Rule(UNCHANGED, "dataStoreUsername is immutable")] = ""
    kubernetes: Annotated[Kubernetes, Needed()] = msgspec.field(default_factory=Kubernetes)
    network_profile: NetworkProfile = msgspec.field(default_factory=NetworkProfile)
    write_permissions: WritePermissions = msgspec.field(default_factory=WritePermissions)
