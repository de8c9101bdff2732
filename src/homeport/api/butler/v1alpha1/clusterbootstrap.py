"""ClusterBootstrap: a management cluster that is made from nothing."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    AddressRange,
    Exposure,
    ExtraDisk,
    Failure,
    Label,
    LocalRef,
    PlatformPart,
    Pool,
    ProviderRef,
    ProviderType,
    Release,
    SecretRef,
    Text,
)
from homeport.api.field import Conditions, Long, Quantity
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Range, Required

_CPU = Annotated[int, Range(1, 128)]


class MachineShape(Model):
    """Size of each machine, as quantities."""

    cpu: _CPU | None = None
    memory: Quantity = ""
    disk: Quantity = ""
    disk_size: Quantity = ""


class MachinePool(Model):
    """Machines of one role of a management cluster."""

    replicas: Annotated[int, Range(0, 10)] | None = None
    cpu: _CPU | None = None
    memory_mb: Annotated[int, Range(2048)] | None = msgspec.field(default=None, name="memoryMB")
    disk_gb: Annotated[int, Range(20)] | None = msgspec.field(default=None, name="diskGB")
    machine_template: MachineShape | None = None
    extra_disks: list[ExtraDisk] = []
    labels: dict[str, str] = {}


class BootstrapCluster(Model):
    """Machines and address of a management cluster."""

    name: Label = ""
    topology: Annotated[str, Enum(("single-node", "ha"))] = ""
    kubernetes_version: Release = ""
    control_plane: MachinePool | None = None
    workers: MachinePool | None = None
    control_plane_endpoint: str = ""


class BootstrapNetwork(Model):
    """Networks and addresses of a management cluster."""

    pod_cidr: str = ""
    service_cidr: str = ""
    vip: str = ""
    vip_interface: str = ""
    load_balancer_pool: Pool | None = None


class ConfigPatch(Model):
    """A change of the Talos machine configuration."""

    op: Required[Annotated[str, Enum(("add", "remove", "replace"))]] = ""
    path: Required[str] = ""
    value: str = ""


class BootstrapTalos(Model):
    """Talos settings of the machines: version, schematic, install disk and patches."""

    version: Release = ""
    schematic: str = ""
    install_disk: str = ""
    config_patches: Annotated[list[ConfigPatch], ListType("atomic")] = []


class BootstrapCni(Model):
    """The network plugin of the management cluster."""

    type: Annotated[str, Enum(("cilium", "none"))] = ""
    version: str = ""
    hubble_enabled: bool | None = None


class BootstrapStorage(Model):
    """Storage driver to install in the management cluster. type: none leaves it out."""

    type: Annotated[str, Enum(("longhorn", "none"))] = ""
    version: str = ""
    replica_count: int | None = None


class BootstrapLoadBalancer(Model):
    """Load balancers for Services of the management cluster."""

    type: Annotated[str, Enum(("metallb", "none"))] = ""
    version: str = ""
    address_pool: AddressRange = ""


class BootstrapGitOps(Model):
    """GitOps in the management cluster."""

    type: Annotated[str, Enum(("flux", "none"))] = ""
    enabled: bool | None = None


class BootstrapHa(Model):
    """How the address of the control plane moves between its machines."""

    type: Annotated[str, Enum(("kube-vip", "none"))] = ""
    version: str = ""


class BootstrapCertManager(Model):
    """The certificate manager of the management cluster."""

    enabled: bool | None = None
    version: str = ""


class BootstrapIngress(Model):
    """The ingress controller of the management cluster."""

    type: Annotated[str, Enum(("traefik", "nginx", "none"))] = ""
    enabled: bool | None = None
    version: str = ""


class BootstrapHosting(Model):
    """The provider of hosted control planes."""

    type: Annotated[str, Enum(("steward", "kamaji", "none"))] = ""
    enabled: bool | None = None
    version: str = ""


class BootstrapInfrastructure(Model):
    """An infrastructure provider of Cluster API."""

    name: Required[ProviderType] = ""
    version: str = ""
    credentials_secret_ref: SecretRef | None = None


class BootstrapCapi(Model):
    """Cluster API in the management cluster. Homeport brings its own controllers."""

    enabled: bool | None = None
    version: str = ""
    infrastructure_providers: list[BootstrapInfrastructure] = []


class BootstrapController(Model):
    """The platform's controllers in the management cluster."""

    enabled: bool | None = None
    version: str = ""
    image: str = ""


class ConsoleIngress(Model):
    """Address of the console. Homeport has no console, so it has no effect."""

    enabled: bool | None = None
    host: str = ""
    class_name: str = ""
    tls: bool | None = None
    tls_secret_name: str = ""


class BootstrapConsole(Model):
    """The web console of the platform. Homeport has none, so it has no effect."""

    enabled: bool | None = None
    version: str = ""
    ingress: ConsoleIngress | None = None


class BootstrapAddons(Model):
    """Add-ons of a management cluster."""

    cni: BootstrapCni | None = None
    storage: BootstrapStorage | None = None
    load_balancer: BootstrapLoadBalancer | None = None
    git_ops: BootstrapGitOps | None = None
    control_plane_ha: BootstrapHa | None = msgspec.field(default=None, name="controlPlaneHA")
    cert_manager: BootstrapCertManager | None = None
    ingress: BootstrapIngress | None = None
    control_plane_provider: BootstrapHosting | None = None
    capi: BootstrapCapi | None = None
    butler_controller: BootstrapController | None = None
    console: BootstrapConsole | None = None


class ClusterBootstrapSpec(Model):
    """The management cluster that should exist."""

    provider: ProviderType = ""
    type: ProviderType = ""
    provider_ref: ProviderRef | None = None
    provider_config_ref: ProviderRef | None = None
    paused: bool = False
    cluster: BootstrapCluster | None = None
    network: BootstrapNetwork | None = None
    networking: BootstrapNetwork | None = None
    platform: PlatformPart | None = None
    talos: BootstrapTalos | None = None
    addons: BootstrapAddons | None = None
    control_plane_exposure: Exposure | None = None


class BootstrapMachine(Model):
    """A machine of a management cluster."""

    name: Required[Text] = ""
    role: Required[str] = ""
    phase: Required[str] = ""
    ip_address: str = ""
    talos_configured: bool = False
    ready: bool = False


class ClusterBootstrapStatus(Failure):
    """State of a management cluster."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: str = ""
    control_plane_endpoint: str = ""
    kubeconfig_secret_ref: LocalRef | None = None
    talosconfig_secret_ref: LocalRef | None = None
    console_url: str = ""
    machines: Annotated[list[BootstrapMachine], ListType("map", ("name",))] = []
    addons_installed: dict[str, bool] = {}


@resource(GROUP, VERSION, "ClusterBootstrap", "clusterbootstraps")
class ClusterBootstrap(Object):
    """A ClusterBootstrap makes a management cluster from nothing and moves the platform there."""

    spec: Required[ClusterBootstrapSpec] = msgspec.field(default_factory=ClusterBootstrapSpec)
    status: ClusterBootstrapStatus = msgspec.field(default_factory=ClusterBootstrapStatus)
