"""CustomResourceDefinitions of k0rdent's kinds: short names, columns and the category `k0rdent`."""

from __future__ import annotations

from typing import Any

from homeport.api.k0rdent import v1beta1 as k0rdent
from homeport.capi.definition.column import AGE, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.capi.name import CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL

CATEGORY = "k0rdent"
# What tools that move clusters take along. Management, releases and the like belong to the plane.
_MOVED = {CLUSTERCTL_LABEL: "", MOVE_HIERARCHY_LABEL: ""}
_OF_PLANE: tuple[type[Any], ...] = (
    k0rdent.Management,
    k0rdent.AccessManagement,
    k0rdent.Release,
    k0rdent.ProviderInterface,
    k0rdent.ProviderTemplate,
    k0rdent.StateManagementProvider,
    k0rdent.ManagementBackup,
    k0rdent.Region,
)


def _condition(name: str, kind: str, part: str = "status") -> Column:
    return Column(name, f'.status.conditions[?(@.type=="{kind}")].{part}')


_READY = _condition("Ready", "Ready")
_TEMPLATE = (
    Column("valid", ".status.valid", "boolean"),
    Column("validationError", ".status.validationError", wide=True),
    Column("description", ".status.description", wide=True),
)
_CHAIN = (Column("Valid", ".status.valid", "boolean"), AGE)
_LOWER_AGE = Column("age", ".metadata.creationTimestamp", "date")

_SHORT: dict[str, tuple[str, ...]] = {
    "ClusterDeployment": ("clusterd", "cld"),
    "ClusterTemplate": ("clustertmpl",),
    "ServiceTemplate": ("svctmpl",),
    "ProviderTemplate": ("providertmpl",),
    "Credential": ("cred",),
    "Management": ("kcm-mgmt", "mgmt"),
    "Region": ("rgn",),
    "ProviderInterface": ("pi",),
    "AccessManagement": ("am",),
    "MultiClusterService": ("mcs",),
    "StateManagementProvider": ("smp",),
    "ClusterDataSource": ("clds",),
    "ClusterAuthentication": ("clauth",),
    "ManagementBackup": ("kcmbackup", "mgmtbackup"),
}
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "ClusterDeployment": (
        _READY,
        _condition("Services", "ServicesInReadyState", "message"),
        Column("Template", ".spec.template"),
        _condition("Messages", "Ready", "message"),
        AGE,
        Column("DryRun", ".spec.dryRun", wide=True),
    ),
    "ClusterTemplate": _TEMPLATE,
    "ServiceTemplate": _TEMPLATE,
    "ProviderTemplate": _TEMPLATE,
    "ClusterTemplateChain": _CHAIN,
    "ServiceTemplateChain": _CHAIN,
    "Credential": (
        Column("Ready", ".status.ready"),
        Column("Region", ".spec.region"),
        Column("Description", ".spec.description"),
    ),
    "Management": (_READY, Column("Release", ".status.release"), AGE),
    "Release": (Column("Ready", ".status.ready"), AGE),
    "Region": (_READY, AGE),
    "ProviderInterface": (Column("Description", ".spec.description"),),
    "AccessManagement": (AGE,),
    "MultiClusterService": (
        _condition("Clusters", "ClusterInReadyState", "message"),
        Column("provider", ".spec.serviceSpec.provider.name"),
        Column("self-management", ".spec.serviceSpec.provider.selfManagement", "boolean"),
        AGE,
    ),
    "ServiceSet": (
        Column("cluster", ".spec.cluster"),
        Column("multiClusterServer", ".spec.multiClusterService"),
        _condition("Services", "ServicesInReadyState", "message"),
        Column("provider", ".spec.provider.name"),
        Column("self-management", ".spec.provider.selfManagement", "boolean"),
        _LOWER_AGE,
    ),
    "StateManagementProvider": (
        _condition("rbac", "RBACReady"),
        _condition("adapter", "AdapterReady"),
        _condition("provisioner", "ProvisionerReady"),
        _condition("provisioner crds", "ProvisionerCRDsReady"),
        Column("ready", ".status.ready", "boolean"),
        Column("suspended", ".spec.suspend", "boolean"),
        _LOWER_AGE,
    ),
    "ClusterIPAM": (Column("phase", ".status.phase"), AGE),
    "ClusterIPAMClaim": (Column("bound", ".status.bound"), AGE),
    "DataSource": (_READY, AGE),
    "ClusterDataSource": (
        Column("DataSource", ".spec.dataSource"),
        Column("Schema", ".spec.schema"),
        Column("Ready", ".status.ready"),
        Column("Error", ".status.error", wide=True),
        AGE,
    ),
    "ClusterAuthentication": (AGE,),
    "ClusterAuditPolicy": (AGE,),
    "ManagementBackup": (
        Column("LastBackupStatus", ".status.lastBackup.phase"),
        Column("NextBackup", ".status.nextAttempt"),
        Column("SinceLastBackup", ".status.lastBackupTime", "date", wide=True),
        AGE,
        Column("Error", ".status.error", wide=True),
    ),
}
KINDS: tuple[type[Any], ...] = (
    k0rdent.ClusterDeployment,
    k0rdent.ClusterTemplate,
    k0rdent.ServiceTemplate,
    k0rdent.ProviderTemplate,
    k0rdent.ClusterTemplateChain,
    k0rdent.ServiceTemplateChain,
    k0rdent.Credential,
    k0rdent.Management,
    k0rdent.Release,
    k0rdent.Region,
    k0rdent.ProviderInterface,
    k0rdent.AccessManagement,
    k0rdent.MultiClusterService,
    k0rdent.ServiceSet,
    k0rdent.StateManagementProvider,
    k0rdent.ClusterIPAM,
    k0rdent.ClusterIPAMClaim,
    k0rdent.DataSource,
    k0rdent.ClusterDataSource,
    k0rdent.ClusterAuthentication,
    k0rdent.ClusterAuditPolicy,
    k0rdent.ManagementBackup,
)


def definitions() -> list[dict[str, Any]]:
    return [_render(kind) for kind in KINDS]


def _render(cls: Any) -> dict[str, Any]:
    at = cls.__resource__
    kind = Kind(versions=(cls,), short=_SHORT.get(at.kind, ()))
    found = render_definition(
        kind, {(at.kind, at.version): _COLUMNS[at.kind]}, {CLUSTERCTL_LABEL: ""} if cls in _OF_PLANE else _MOVED
    )
    found["spec"]["names"]["categories"] = [CATEGORY]
    return found
