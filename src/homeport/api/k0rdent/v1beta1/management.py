"""The management plane itself: Management, Release, Region, ProviderInterface, backups."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector, Long, Time
from homeport.api.k0rdent.v1beta1.part import (
    GROUP,
    IMMUTABLE,
    VERSION,
    Core,
    PlaneStatus,
    Provider,
    Strings,
    Text,
    named,
)
from homeport.api.k0rdent.v1beta1.template import exactly_one
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Pattern, Preserve, Required


class Cleanup(Model):
    """What goes together with the Management."""

    k0rdent_crds: bool = named(False, "k0rdentCRDs")
    capi_provider_crds: bool = named(False, "capiProviderCRDs")


class ManagementSpec(Model):
    """The release and the providers of the management plane."""

    release: Required[Text] = ""
    core: Core | None = None
    providers: list[Provider] = []
    cleanup: Cleanup | None = None


class ManagementStatus(PlaneStatus):
    """State of the management plane."""

    release: str = ""
    backup_name: str = ""


@resource(GROUP, VERSION, "Management", "managements", namespaced=False)
class Management(Object):
    """A Management describes the management plane. The only one is named kcm."""

    spec: ManagementSpec = msgspec.field(default_factory=ManagementSpec)
    status: ManagementStatus = msgspec.field(default_factory=ManagementStatus)


class TemplateRef(Model):
    """The ProviderTemplate of a component."""

    template: Required[str] = ""


class NamedTemplateRef(Model):
    """A provider, and its ProviderTemplate."""

    name: Required[str] = ""
    template: Required[str] = ""


class ReleaseSpec(Model):
    """The version, and the template of each component."""

    version: Required[str] = ""
    kcm: Required[TemplateRef] = msgspec.field(default_factory=TemplateRef)
    capi: Required[TemplateRef] = msgspec.field(default_factory=TemplateRef)
    regional: TemplateRef | None = None
    providers: list[NamedTemplateRef] = []


class ReleaseStatus(Model):
    """Whether the release can be used."""

    ready: bool = False
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "Release", "releases", namespaced=False)
class Release(Object):
    """A Release lists the templates that belong together in one version."""

    spec: ReleaseSpec = msgspec.field(default_factory=ReleaseSpec)
    status: ReleaseStatus = msgspec.field(default_factory=ReleaseStatus)


class KubeConfigKey(Model):
    """A Secret with a kubeconfig."""

    __schema__ = (IMMUTABLE,)

    name: Required[str] = ""
    key: str = ""


class ClusterDeploymentRef(Model):
    """A ClusterDeployment, by its namespace and name."""

    __schema__ = (IMMUTABLE,)

    namespace: Required[str] = ""
    name: Required[str] = ""


class RegionSpec(Model):
    """The cluster of the region, and its components."""

    __schema__ = exactly_one("kubeConfig", "clusterDeployment")

    kube_config: KubeConfigKey | None = None
    cluster_deployment: ClusterDeploymentRef | None = None
    core: Core | None = None
    providers: list[Provider] = []


@resource(GROUP, VERSION, "Region", "regions", namespaced=False)
class Region(Object):
    """A Region is a cluster that runs providers for other clusters."""

    spec: RegionSpec = msgspec.field(default_factory=RegionSpec)
    status: PlaneStatus = msgspec.field(default_factory=PlaneStatus)


class IdentityReference(Model):
    """An object that an identity refers to."""

    group: Required[str] = ""
    version: Required[str] = ""
    kind: Required[str] = ""
    name_field_path: Required[Annotated[str, Pattern("^[^.].*$")]] = ""
    namespace_field_path: Annotated[str, Pattern("^[^.].*$")] = ""


class ClusterIdentity(Model):
    """A kind of identity that the provider accepts."""

    group: Required[str] = ""
    version: Required[str] = ""
    kind: Required[str] = ""
    references: list[IdentityReference] = []


class GroupVersionKind(Model):
    """A kind of an API."""

    group: str = ""
    version: str = ""
    kind: str = ""


class ProviderInterfaceSpec(Model):
    """Kinds that the provider serves, and the identities that it accepts."""

    description: str = ""
    cluster_identities: list[ClusterIdentity] = []
    cluster_identity_kinds: Strings = []
    cluster_gvks: list[GroupVersionKind] = named([], "clusterGVKs")


class ProviderInterfaceStatus(Model):
    """Providers that the interface stands for."""

    exposed_providers: str = ""
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "ProviderInterface", "providerinterfaces", namespaced=False)
class ProviderInterface(Object):
    """A ProviderInterface tells which identities a provider accepts. Its label cluster.x-k8s.io/provider names it."""

    spec: ProviderInterfaceSpec = msgspec.field(default_factory=ProviderInterfaceSpec)
    status: ProviderInterfaceStatus = msgspec.field(default_factory=ProviderInterfaceStatus)


class ManagementBackupSpec(Model):
    """When backups are made, and where they are kept."""

    storage_location: str = ""
    schedule: str = ""
    perform_on_management_upgrade: bool = False


class BackupState(Model):
    """State of a backup."""

    __schema__ = (Preserve(),)

    phase: str = ""
    start_timestamp: Time | None = None
    completion_timestamp: Time | None = None
    failure_reason: str = ""


class BackupOfPlane(Model):
    """The last backup of one management plane."""

    last_backup: BackupState | None = None
    last_backup_name: str = ""
    last_backup_time: Time | None = None
    next_attempt: Time | None = None
    error: str = ""
    region: str = ""


class ManagementBackupStatus(BackupOfPlane):
    """The last backup, and when the next one is due."""

    regions: list[BackupOfPlane] = []
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "ManagementBackup", "managementbackups", namespaced=False)
class ManagementBackup(Object):
    """A ManagementBackup backs up the management plane: once, or on a schedule."""

    spec: ManagementBackupSpec = msgspec.field(default_factory=ManagementBackupSpec)
    status: ManagementBackupStatus = msgspec.field(default_factory=ManagementBackupStatus)


class ReadinessOf(Model):
    """An object, and a rule that says when it is ready."""

    api_version: Required[str] = ""
    kind: Required[str] = ""
    name: Required[str] = ""
    namespace: Required[str] = ""
    readiness_rule: Required[str] = ""


class ProvisionerCrd(Model):
    """Kinds that must be defined."""

    group: Required[str] = ""
    version: Required[str] = ""
    resources: Required[Strings] = []


class StateManagementProviderSpec(Model):
    """What brings services into clusters, and when it is ready."""

    selector: Required[LabelSelector] = {}
    adapter: Required[ReadinessOf] = msgspec.field(default_factory=ReadinessOf)
    provisioner: Required[list[ReadinessOf]] = []
    provisioner_crds: Required[list[ProvisionerCrd]] = named([], "provisionerCRDs")
    suspend: bool = False


class StateManagementProviderStatus(Model):
    """Whether the provider is ready."""

    ready: bool = False
    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "StateManagementProvider", "statemanagementproviders", namespaced=False)
class StateManagementProvider(Object):
    """A StateManagementProvider brings services into clusters."""

    spec: StateManagementProviderSpec = msgspec.field(default_factory=StateManagementProviderSpec)
    status: StateManagementProviderStatus = msgspec.field(default_factory=StateManagementProviderStatus)
