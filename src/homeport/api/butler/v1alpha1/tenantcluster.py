"""TenantCluster: a Kubernetes cluster that the platform makes and keeps for a tenant."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    AddressRange,
    Block,
    ControlPlaneResources,
    Label,
    LocalRef,
    PlatformPart,
    Pool,
    Positive,
    ProviderRef,
    Release,
    Some,
    Text,
    Values,
)
from homeport.api.butler.v1alpha1.providerconfig import HarvesterNames, NutanixEntities
from homeport.api.core.v1 import Taint
from homeport.api.field import Conditions, Long, Quantity, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Range, Required, Size

OS_TYPES = ("rocky", "flatcar", "talos", "kairos", "bottlerocket")


class TenantControlPlane(Model):
    """Control plane of a tenant cluster."""

    type: Annotated[str, Enum(("hosted", "standalone"))] = ""
    replicas: Annotated[int, Range(1, 3)] | None = None
    data_store_ref: LocalRef | None = None
    service_type: Annotated[str, Enum(("LoadBalancer", "NodePort", "ClusterIP"))] = ""
    cert_sans: list[str] = msgspec.field(default_factory=list, name="certSANs")
    external_cloud_provider: bool | None = None
    resources: ControlPlaneResources | None = None


class TalosPart(Model):
    """Talos settings of the workers."""

    install_disk: str = ""
    installer_image: str = ""
    version: str = ""


class WorkerOS(Model):
    """Operating system of the workers."""

    type: Annotated[str, Enum(OS_TYPES)] = ""
    version: str = ""
    image_ref: str = ""
    schematic_id: str = ""
    ssh_authorized_key: str = ""
    talos: TalosPart | None = None


class WorkerMachine(Model):
    """Size and operating system of each worker."""

    cpu: Positive | None = None
    memory: Quantity = ""
    disk_size: Quantity = ""
    disk: Quantity = ""
    os: WorkerOS | None = None


class Workers(Model):
    """Workers of a tenant cluster."""

    replicas: Some | None = None
    machine_template: WorkerMachine | None = None


class WorkerPool(Workers):
    """A further group of workers of a tenant cluster."""

    name: Required[Label] = ""
    labels: dict[str, str] = {}
    taints: Annotated[list[Taint], Size(None, 100), ListType("atomic")] = []


class TenantNetworking(Model):
    """Networks and addresses of a tenant cluster."""

    pod_cidr: str = ""
    service_cidr: str = ""
    load_balancer_pool: Pool | None = None
    lb_pool_size: Positive | None = None


class ManagementPolicy(Model):
    """Whether Homeport changes the cluster or only reports on it. Set mode."""

    mode: Annotated[str, Enum(("Active", "Observe", "GitOps"))] = ""


class NetworkAddon(Model):
    """The network plugin of a tenant cluster."""

    provider: Annotated[str, Enum(("cilium",))] = ""
    version: str = ""
    values: Values = {}


class LoadBalancerAddon(Model):
    """Load balancers for Services of a tenant cluster."""

    provider: Annotated[str, Enum(("metallb",))] = ""
    enabled: bool | None = None
    version: str = ""
    address_pool: AddressRange = ""
    values: Values = {}


class CertManagerAddon(Model):
    """The certificate manager of a tenant cluster."""

    enabled: bool | None = None
    version: str = ""
    values: Values = {}


class StorageAddon(Model):
    """Storage driver to install in the tenant cluster."""

    provider: Annotated[str, Enum(("longhorn", "linstor"))] = ""
    enabled: bool | None = None
    version: str = ""
    values: Values = {}


class IngressAddon(Model):
    """The ingress controller of a tenant cluster."""

    provider: Annotated[str, Enum(("traefik", "nginx"))] = ""
    enabled: bool | None = None
    version: str = ""
    values: Values = {}


class GitRepository(Model):
    """A Git repository with manifests."""

    url: Required[Text] = ""
    branch: str = ""
    path: str = ""
    secret_ref: LocalRef | None = None


class GitOpsAddon(Model):
    """GitOps tool to install in the tenant cluster, with its provider and repository."""

    provider: Annotated[str, Enum(("fluxcd", "argocd"))] = ""
    version: str = ""
    repository: GitRepository | None = None


class TenantAddons(Model):
    """Add-ons that a tenant cluster starts with."""

    cni: NetworkAddon | None = None
    load_balancer: LoadBalancerAddon | None = None
    cert_manager: CertManagerAddon | None = None
    storage: StorageAddon | None = None
    ingress: IngressAddon | None = None
    gitops: GitOpsAddon | None = None


class NutanixOverride(NutanixEntities):
    """Entities of Prism Central that only this cluster uses."""


class HarvesterOverride(HarvesterNames):
    """Namespace, network, image and storage of Harvester that only this cluster uses."""


class InfrastructureOverride(Model):
    """Settings of the ProviderConfig that differ for this cluster."""

    nutanix: NutanixOverride | None = None
    harvester: HarvesterOverride | None = None
    proxmox: Block | None = None
    gcp: Block | None = None


class WorkspaceQuota(Model):
    """The most that all workspaces of a cluster may use."""

    max_cpu: str = msgspec.field(default="", name="maxCPU")
    max_memory: str = ""
    max_storage: str = ""


class WorkspaceSettings(Model):
    """Workspaces of developers in a tenant cluster. They are stored and not acted on."""

    enabled: bool = False
    default_image: str = ""
    max_workspaces: int | None = None
    resource_quota: WorkspaceQuota | None = None
    auto_delete_after: str = ""


class TenantClusterSpec(Model):
    """Desired state of a tenant cluster. Everything that is left out has a default."""

    kubernetes_version: Release = ""
    team_ref: LocalRef | None = None
    provider_config_ref: ProviderRef | None = None
    control_plane: TenantControlPlane | None = None
    workers: Workers | None = None
    worker_pools: Annotated[list[WorkerPool], Size(None, 20), ListType("map", ("name",))] = []
    networking: TenantNetworking | None = None
    platform: PlatformPart | None = None
    addons: TenantAddons | None = None
    management_policy: ManagementPolicy | None = None
    paused: bool = False
    time_servers: list[str] = []
    infrastructure_override: InfrastructureOverride | None = None
    workspaces: WorkspaceSettings | None = None


class ObservedWorkers(Model):
    """Workers that the cluster has."""

    desired: Required[int] = 0
    ready: Required[int] = 0
    nodes: list[str] = []


class ObservedAddon(Model):
    """An add-on that the cluster has."""

    name: Required[str] = ""
    version: Required[str] = ""
    status: Required[Annotated[str, Enum(("Pending", "Installing", "Healthy", "Degraded", "Failed"))]] = ""
    managed_by: Required[Annotated[str, Enum(("butler", "flux", "argocd", "manual"))]] = ""
    message: str = ""


class ObservedState(Model):
    """Observed state of the cluster."""

    kubernetes_version: str = ""
    workers: ObservedWorkers | None = None
    addons: Annotated[list[ObservedAddon], ListType("map", ("name",))] = []


class EffectiveValue(Model):
    """A value that the platform uses, and where it comes from."""

    field: Required[str] = ""
    value: str = ""
    source: Required[str] = ""


class TenantClusterStatus(Model):
    """State of a tenant cluster."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[
        str, Enum(("Pending", "Provisioning", "Installing", "Ready", "Updating", "Deleting", "Failed"))
    ] = ""
    tenant_namespace: str = ""
    provider: str = ""
    provider_config_ref: ProviderRef | None = None
    control_plane_endpoint: str = ""
    kubeconfig_secret_ref: LocalRef | None = None
    last_transition_time: Time | None = None
    observed_state: ObservedState | None = None
    worker_nodes_ready: int = 0
    worker_nodes_desired: int = 0
    worker_selector: str = ""
    ip_allocation_ref: LocalRef | None = None
    lb_allocation_ref: LocalRef | None = None
    image_sync_ref: LocalRef | None = None
    effective: Annotated[list[EffectiveValue], ListType("map", ("field",))] = []


@resource(GROUP, VERSION, "TenantCluster", "tenantclusters")
class TenantCluster(Object):
    """A TenantCluster is a Kubernetes cluster that the platform makes, upgrades and deletes for a tenant."""

    spec: TenantClusterSpec = msgspec.field(default_factory=TenantClusterSpec)
    status: TenantClusterStatus = msgspec.field(default_factory=TenantClusterStatus)
