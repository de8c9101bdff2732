"""Services: Helm charts and manifests that are brought into clusters, as several kinds describe them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, Time
from homeport.api.k0rdent.v1beta1.part import Block, Strings, Text, Values, fixed_once_set, named
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, Format, ListType, Range, Required

SYNC_MODES = ("OneTime", "Continuous", "ContinuousWithDriftDetection", "DryRun")
STATES = ("Deployed", "Provisioning", "Failed", "Pending", "Deleting", "Deleted")
TYPES = ("Helm", "Kustomize", "Resource")
DEFAULT_NAMESPACE = "default"


class InstallOptions(Model):
    """Options of the first installation."""

    create_namespace: bool | None = None
    disable_hooks: bool = False
    replace: bool | None = None
    take_ownership: bool = False


class UpgradeOptions(Model):
    """Options of an upgrade."""

    cleanup_on_fail: bool = False
    disable_hooks: bool = False
    force: bool = False
    max_history: Annotated[int, Format("")] | None = None
    recreate: bool = False
    reset_then_reuse_values: bool = False
    reset_values: bool = False
    reuse_values: bool = False
    sub_notes: bool = False
    take_ownership: bool = False
    upgrade_crds: bool = named(False, "upgradeCRDs")


class UninstallOptions(Model):
    """Options of the removal."""

    deletion_propagation: Annotated[str, Enum(("orphan", "foreground", "background"))] = ""
    disable_hooks: bool = False
    keep_history: bool = False


class HelmOptions(Model):
    """How Helm installs, upgrades and removes the chart."""

    atomic: bool = False
    create_namespace: bool | None = None
    dependency_update: bool = False
    description: str = ""
    disable_hooks: bool = False
    disable_open_api_validation: bool = False
    enable_client_cache: bool = False
    install_options: InstallOptions | None = None
    labels: dict[str, str] = {}
    replace: bool | None = None
    skip_crds: bool = named(False, "skipCRDs")
    skip_schema_validation: bool = False
    timeout: str = ""
    uninstall_options: UninstallOptions | None = None
    upgrade_options: UpgradeOptions | None = None
    wait: bool = False
    wait_for_jobs: bool = False


class ValuesFrom(Model):
    """A ConfigMap or Secret with values."""

    kind: Required[Annotated[str, Enum(("ConfigMap", "Secret"))]] = ""
    name: Required[str] = ""


class ServiceDependency(Model):
    """A service that must be deployed before."""

    name: Required[Text] = ""
    namespace: str = ""


class Service(Model):
    """A service of a cluster."""

    name: Required[Text] = ""
    namespace: Annotated[str, Default(DEFAULT_NAMESPACE)] = DEFAULT_NAMESPACE
    template: Required[Text] = ""
    template_chain: str = ""
    version: str = ""
    values: str = ""
    values_from: list[ValuesFrom] = []
    depends_on: list[ServiceDependency] = []
    disable: bool = False
    helm_action: Annotated[str, Enum(("Install", "Uninstall"))] = ""
    helm_options: HelmOptions | None = None


class ServiceProvider(Model):
    """What brings services into clusters."""

    name: Annotated[str, fixed_once_set("the name of the provider")] = ""
    config: Values = {}
    self_management: bool = False


class ServiceSpec(Model):
    """The services of a cluster, and how they are kept."""

    services: Annotated[list[Service], ListType("map", ("name", "namespace"))] = []
    provider: ServiceProvider = msgspec.field(default_factory=ServiceProvider)
    priority: Annotated[int, Range(1, 2147483646)] | None = None
    sync_mode: Annotated[str, Enum(SYNC_MODES)] = ""
    stop_on_conflict: bool = False
    continue_on_error: bool = False
    reload: bool = False
    drift_ignore: list[Block] = []
    drift_exclusions: list[Block] = []
    policy_refs: Annotated[list[Block], ListType("atomic")] = []
    template_resource_refs: list[Block] = []


class ServiceState(Model):
    """State of one service in a cluster."""

    type: Required[Annotated[str, Enum(TYPES)]] = ""
    name: Required[str] = ""
    namespace: Required[str] = ""
    template: Required[str] = ""
    version: str = ""
    state: Required[Annotated[str, Enum(STATES)]] = ""
    failure_message: str = ""
    last_state_transition_time: Required[Time] = ""
    last_deployed_hash: str = ""
    conditions: Conditions = []


class VersionedTemplate(Model):
    """A template, and the version that it stands for."""

    name: Required[str] = ""
    version: str = ""


class UpgradePath(Model):
    """Templates that a service can be upgraded to."""

    upgrade_paths: Strings = []
    versions: list[VersionedTemplate] = []


class ServiceUpgradePaths(Model):
    """Upgrades of one service."""

    name: Required[str] = ""
    namespace: Required[str] = ""
    template: Required[str] = ""
    available_upgrades: list[UpgradePath] = []
