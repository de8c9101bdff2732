"""CustomResourceDefinitions of Butler's kinds: short names, columns and the category `butler`."""

from __future__ import annotations

from typing import Any

from homeport.api.butler import v1alpha1 as butler
from homeport.capi.definition.column import AGE, PHASE, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.capi.name import CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL

CATEGORY = "butler"
# Tools that move clusters take along objects of kinds with these labels: by themselves, or with their owners alone.
LABELS = {CLUSTERCTL_LABEL: "", MOVE_HIERARCHY_LABEL: ""}
_OTHER_LABELS: dict[type[Any], dict[str, str]] = {
    butler.IPAllocation: {CLUSTERCTL_LABEL: ""},
    butler.AddonDefinition: {},  # each plane has its own catalogue; label those that should move
    butler.ClusterBootstrap: {},  # it drives the move into its own cluster, so it stays behind
}
_WORKERS_SCALE = {
    "specReplicasPath": ".spec.workers.replicas",
    "statusReplicasPath": ".status.workerNodesReady",
    "labelSelectorPath": ".status.workerSelector",
}
_READY = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_MESSAGE = Column("Message", '.status.conditions[?(@.type=="Ready")].message', wide=True)
_ADDON = (
    Column("Addon", ".spec.addon"),
    Column("Version", ".spec.version"),
    PHASE,
    Column("Installed", ".status.installedVersion"),
    _MESSAGE,
    AGE,
)
_DISPLAY_NAME = Column("Display Name", ".spec.displayName")
# Both spellings; the server prints the one that the object has.
_PROVIDER = Column("Provider", ".spec['provider','type']")


def _count(name: str, path: str) -> Column:
    return Column(name, path, "integer")


# Kind > its short names. Machine of Cluster API already has `ma`, so ManagementAddon does without it.
_SHORT: dict[str, tuple[str, ...]] = {
    "ProviderConfig": ("pc",),
    "TenantCluster": ("tc",),
    "MachineRequest": ("mr",),
    "ClusterBootstrap": ("cb",),
    "ButlerConfig": ("bc",),
    "Team": ("tm",),
    "User": ("usr",),
    "IdentityProvider": ("idp",),
    "AddonDefinition": ("ad", "adddef"),
    "TenantAddon": ("ta",),
    "ManagementAddon": ("maddon",),
    "NetworkPool": ("np",),
    "IPAllocation": ("ipa",),
    "ImageSync": ("is",),
    "LoadBalancerRequest": ("lbr",),
    "Workspace": ("ws",),
    "WorkspaceTemplate": ("wst",),
    "ClusterCreationPolicy": ("ccp",),
}
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "ProviderConfig": (
        _PROVIDER,
        Column("Scope", ".spec.scope.type", wide=True),
        _READY,
        Column("Validated", ".status.validated", "boolean"),
        Column("Version", ".status.providerVersion"),
        Column("Endpoint", ".status.endpoint", wide=True),
        _MESSAGE,
        AGE,
    ),
    "TenantCluster": (
        PHASE,
        Column("K8s Version", ".status.observedState.kubernetesVersion"),
        _count("Workers", ".status.workerNodesReady"),
        _count("Desired", ".status.workerNodesDesired"),
        Column("Endpoint", ".status.controlPlaneEndpoint"),
        Column("Provider", ".status.providerConfigRef.name", wide=True),
        Column("Namespace", ".status.tenantNamespace", wide=True),
        _MESSAGE,
        AGE,
    ),
    "MachineRequest": (
        Column("Machine", ".spec.machineName"),
        Column("Role", ".spec.role"),
        PHASE,
        Column("IP", ".status.ipAddress"),
        Column("Provider ID", ".status.providerID", wide=True),
        _MESSAGE,
        AGE,
    ),
    "ClusterBootstrap": (
        Column("Cluster", ".spec.cluster.name"),
        Column("Topology", ".spec.cluster.topology"),
        PHASE,
        Column("Endpoint", ".status.controlPlaneEndpoint"),
        _MESSAGE,
        AGE,
    ),
    "ButlerConfig": (
        Column("Mode", ".status.mode"),
        Column("Default Provider", ".spec.defaultProviderConfigRef.name"),
        _count("Teams", ".status.teamCount"),
        _count("Clusters", ".status.clusterCount"),
        _MESSAGE,
        AGE,
    ),
    "Team": (
        _DISPLAY_NAME,
        PHASE,
        Column("Namespace", ".status.namespace"),
        _count("Clusters", ".status.clusterCount"),
        Column("Quota", ".status.quotaStatus"),
        _MESSAGE,
        AGE,
    ),
    "User": (
        Column("Email", ".spec.email"),
        _DISPLAY_NAME,
        Column("Auth", ".spec.authType", wide=True),
        Column("Platform Role", ".spec.platformRole"),
        PHASE,
        _MESSAGE,
        AGE,
    ),
    "IdentityProvider": (
        Column("Type", ".spec.type"),
        Column("Issuer", ".spec.oidc['issuerURL','issuer']"),
        PHASE,
        _MESSAGE,
        AGE,
    ),
    "AddonDefinition": (
        _DISPLAY_NAME,
        Column("Category", ".spec.category"),
        Column("Chart", ".spec.chart.name"),
        Column("Version", ".spec.chart.defaultVersion"),
        Column("Platform", ".spec.platform", "boolean"),
        AGE,
    ),
    "TenantAddon": (
        Column("Cluster", ".spec.clusterRef.name"),
        *_ADDON,
    ),
    "ManagementAddon": _ADDON,
    "NetworkPool": (
        Column("CIDR", ".spec.cidr"),
        _count("Available", ".status.availableIPs"),
        _count("Allocated", ".status.allocatedIPs"),
        _count("Total", ".status.totalIPs"),
        _MESSAGE,
        AGE,
    ),
    "IPAllocation": (
        Column("Pool", ".spec.poolRef.name"),
        Column("Cluster", ".spec.tenantClusterRef.name"),
        Column("Type", ".spec.type"),
        PHASE,
        Column("Start", ".status.startAddress"),
        Column("End", ".status.endAddress"),
        _MESSAGE,
        AGE,
    ),
    "ImageSync": (
        PHASE,
        _count("Progress", ".status.progress"),
        Column("Schematic", ".spec.factoryRef.schematicID", wide=True),
        Column("Version", ".spec.factoryRef.version"),
        Column("Provider", ".spec.providerConfigRef.name"),
        Column("Image Ref", ".status.providerImageRef"),
        _MESSAGE,
        AGE,
    ),
    "LoadBalancerRequest": (
        Column("Cluster", ".spec.clusterName"),
        PHASE,
        Column("Endpoint", ".status.endpoint"),
        _count("Targets", ".status.registeredTargets"),
        _MESSAGE,
        AGE,
    ),
    "Workspace": (
        PHASE,
        Column("Cluster", ".spec.clusterRef.name"),
        Column("Owner", ".spec.owner"),
        Column("Image", ".spec.image"),
        Column("Connected", ".status.connected", "boolean"),
        _MESSAGE,
        AGE,
    ),
    "WorkspaceTemplate": (
        _DISPLAY_NAME,
        Column("Image", ".spec.template.image"),
        Column("Category", ".spec.category"),
        Column("Scope", ".spec.scope"),
        _MESSAGE,
        AGE,
    ),
    "ClusterCreationPolicy": (
        Column("Team", ".spec.scope['team','teamAndEnvironment'].teamRef.name"),
        Column("Env", ".spec.scope.teamAndEnvironment.environmentName"),
        Column("Providers", ".spec.targetProviders"),
        _READY,
        _MESSAGE,
        AGE,
    ),
}
KINDS = (
    butler.ProviderConfig,
    butler.ButlerConfig,
    butler.TenantCluster,
    butler.MachineRequest,
    butler.ClusterBootstrap,
    butler.Team,
    butler.User,
    butler.AddonDefinition,
    butler.TenantAddon,
    butler.ManagementAddon,
    butler.NetworkPool,
    butler.IPAllocation,
    butler.ImageSync,
    butler.ClusterCreationPolicy,
    butler.IdentityProvider,
    butler.LoadBalancerRequest,
    butler.Workspace,
    butler.WorkspaceTemplate,
)


def definitions() -> list[dict[str, Any]]:
    return [_render(kind) for kind in KINDS]


def _render(cls: Any) -> dict[str, Any]:
    at = cls.__resource__
    scale = _WORKERS_SCALE if cls is butler.TenantCluster else None
    kind = Kind(versions=(cls,), short=_SHORT[at.kind], scale=scale)
    labels = _OTHER_LABELS.get(cls, LABELS)
    found = render_definition(kind, {(at.kind, at.version): _COLUMNS[at.kind]}, labels)
    found["spec"]["names"]["categories"] = [CATEGORY]
    return found
