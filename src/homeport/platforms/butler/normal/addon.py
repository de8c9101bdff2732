"""AddonDefinition, TenantAddon and ManagementAddon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.butler.v1alpha1 import AddonDefinition, ManagementAddon, TenantAddon
from homeport.api.butler.v1alpha1.addon import AddonChart, AddonDefaults, HelmSource
from homeport.platforms.butler.normal.outcome import Normal, Reading
from homeport.platforms.butler.normal.url import check_url


@dataclass(frozen=True, slots=True)
class DefinitionModel:
    name: str
    chart: AddonChart
    namespace: str
    release: str
    create_namespace: bool
    values: Mapping[str, Any]
    timeout: str
    platform: bool
    category: str
    depends_on: tuple[str, ...]


def normal_addon_definition(definition: AddonDefinition) -> Normal[DefinitionModel]:
    reading, spec, name = Reading(), definition.spec, definition.metadata.name
    given = spec.defaults or AddonDefaults()
    values = reading.either(("spec.defaults.values", given.values), ("spec.defaultValues", spec.default_values)) or {}
    needed = reading.either(("spec.dependsOn", spec.depends_on), ("spec.dependencies", spec.dependencies)) or []
    if name in needed:
        reading.fault("spec.dependsOn", f'"{name}": an add-on cannot depend on itself')
    available = spec.chart.available_versions
    if available and spec.chart.default_version not in available:
        reading.fault(
            "spec.chart.defaultVersion",
            f'"{spec.chart.default_version}" is not one of spec.chart.availableVersions ({", ".join(available)})',
        )
    return reading.result(
        lambda: DefinitionModel(
            name=name,
            chart=spec.chart,
            namespace=given.namespace or name,
            release=given.release_name or name,
            create_namespace=given.create_namespace is not False,
            values=values,
            timeout=given.timeout or "10m",
            platform=spec.platform,
            category=spec.category,
            depends_on=tuple(needed),
        )
    )


@dataclass(frozen=True, slots=True)
class AddonRequest:
    """An add-on of a cluster. `cluster` '': the management cluster."""

    cluster: str
    addon: str  # '': `helm` is set
    helm: HelmSource | None
    version: str  # '': the one of the catalogue
    values: Mapping[str, Any]
    depends_on: tuple[str, ...]
    paused: bool


def normal_tenant_addon(addon: TenantAddon) -> Normal[AddonRequest]:
    reading, spec = Reading(), addon.spec
    if bool(spec.addon) == (spec.helm is not None):
        reading.missing("spec.addon", "set exactly one of addon and helm")
    if spec.helm is not None and not spec.version:
        reading.missing("spec.version", "a chart that is not in the catalogue needs a version")
    if spec.helm is not None:
        check_url(reading, "spec.helm.repository", spec.helm.repository)
    needed = tuple(each.name for each in spec.depends_on)
    if addon.metadata.name in needed:
        reading.fault("spec.dependsOn", f'"{addon.metadata.name}": an add-on cannot depend on itself')
    return reading.result(
        lambda: AddonRequest(
            spec.cluster_ref.name, spec.addon, spec.helm, spec.version, spec.values, needed, spec.paused
        )
    )


def normal_management_addon(addon: ManagementAddon) -> Normal[AddonRequest]:
    spec = addon.spec
    return Normal(AddonRequest("", spec.addon, None, spec.version, spec.values, (), spec.paused))
