"""AddonDefinition, TenantAddon and ManagementAddon: a catalogue of add-ons, and add-ons of clusters."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import GROUP, VERSION, HelmReleaseStatus, LocalRef, Text, Values
from homeport.api.field import Conditions, Long, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, ListType, Pattern, Required, Size

CATEGORIES = (
    "cni", "networking", "loadbalancer", "storage", "certmanager", "ingress", "observability", "backup", "gitops",
    "security", "dns", "database", "messaging", "service-mesh", "other",
)  # fmt: skip


class AddonChart(Model):
    """The Helm chart of an add-on."""

    repository: Required[Annotated[str, Pattern("^(https?|oci)://")]] = ""
    name: Required[Text] = ""
    default_version: Required[Text] = ""
    available_versions: list[str] = []


class AddonDefaults(Model):
    """How an add-on is installed."""

    namespace: str = ""
    release_name: str = ""
    create_namespace: bool | None = None
    values: Values = {}
    timeout: str = ""


class Maintainer(Model):
    """Who maintains an add-on."""

    name: str = ""
    email: str = ""


class AddonLinks(Model):
    """Pages about an add-on."""

    documentation: str = ""
    homepage: str = ""
    source: str = ""


class AddonDefinitionSpec(Model):
    """An add-on that clusters can have."""

    display_name: Required[Annotated[str, Size(1, 64)]] = ""
    description: Required[Annotated[str, Size(1, 512)]] = ""
    category: Required[Annotated[str, Enum(CATEGORIES)]] = ""
    icon: Annotated[str, Size(None, 8)] = ""
    icon_data: Annotated[str, Size(None, 131072)] = ""
    chart: Required[AddonChart] = msgspec.field(default_factory=AddonChart)
    defaults: AddonDefaults | None = None
    default_values: Values = {}
    platform: bool = False
    tier: Annotated[str, Enum(("infrastructure", "apps"))] = ""
    depends_on: list[str] = []
    dependencies: list[str] = []
    maintainer: Maintainer | None = None
    links: AddonLinks | None = None


class AddonDefinitionStatus(Model):
    """State of an entry of the catalogue."""

    conditions: Conditions = []
    observed_generation: Long = 0


@resource(GROUP, VERSION, "AddonDefinition", "addondefinitions", namespaced=False)
class AddonDefinition(Object):
    """An AddonDefinition is an entry of the catalogue of add-ons."""

    spec: Required[AddonDefinitionSpec] = msgspec.field(default_factory=AddonDefinitionSpec)
    status: AddonDefinitionStatus = msgspec.field(default_factory=AddonDefinitionStatus)


class HelmSource(Model):
    """A Helm chart that is not in the catalogue."""

    repository: Required[Annotated[str, Pattern("^(https?|oci)://.+")]] = ""
    chart: Required[Text] = ""
    release_name: str = ""
    namespace: str = ""
    create_namespace: bool | None = None


class TenantAddonSpec(Model):
    """The add-on, and the cluster that gets it."""

    cluster_ref: Required[LocalRef] = msgspec.field(default_factory=LocalRef)
    addon: str = ""
    helm: HelmSource | None = None
    version: str = ""
    values: Values = {}
    depends_on: Annotated[list[LocalRef], ListType("atomic")] = []
    paused: bool = False


class AddonStatus(Model):
    """State of an add-on in its cluster."""

    conditions: Conditions = []
    observed_generation: Long = 0
    helm_release: HelmReleaseStatus | None = None
    installed_version: str = ""
    message: str = ""


class TenantAddonStatus(AddonStatus):
    """State of an add-on in a tenant cluster."""

    phase: Annotated[
        str, Enum(("Pending", "Installing", "Installed", "Upgrading", "Degraded", "Failed", "Deleting"))
    ] = ""
    last_transition_time: Time | None = None


@resource(GROUP, VERSION, "TenantAddon", "tenantaddons")
class TenantAddon(Object):
    """A TenantAddon installs an add-on in a tenant cluster."""

    spec: Required[TenantAddonSpec] = msgspec.field(default_factory=TenantAddonSpec)
    status: TenantAddonStatus = msgspec.field(default_factory=TenantAddonStatus)


class ManagementAddonSpec(Model):
    """The add-on of the management cluster."""

    addon: Required[Text] = ""
    version: str = ""
    values: Values = {}
    paused: bool = False


class ManagementAddonStatus(AddonStatus):
    """State of an add-on in the management cluster."""

    phase: Annotated[
        str, Enum(("Pending", "Installing", "Installed", "Upgrading", "Degraded", "Failed", "Uninstalling"))
    ] = ""
    last_attempted_version: str = ""


@resource(GROUP, VERSION, "ManagementAddon", "managementaddons", namespaced=False)
class ManagementAddon(Object):
    """A ManagementAddon installs an add-on in the management cluster."""

    spec: Required[ManagementAddonSpec] = msgspec.field(default_factory=ManagementAddonSpec)
    status: ManagementAddonStatus = msgspec.field(default_factory=ManagementAddonStatus)
