"""ButlerConfig: settings of the platform, with those that are left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.api.butler.v1alpha1 import ButlerConfig
from homeport.api.butler.v1alpha1.butlerconfig import AddonVersions, ButlerConfigSpec, ImageFactory
from homeport.api.butler.v1alpha1.part import ControlPlaneResources, Exposure, ProviderRef
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.name import CONFIG_NAME, TENANTS_NAMESPACE
from homeport.platforms.butler.normal.addons import check_default_addons
from homeport.platforms.butler.normal.addresses import NONE, read_range
from homeport.platforms.butler.normal.limits import Limits, read_default_limits
from homeport.platforms.butler.normal.outcome import Normal, Reading
from homeport.platforms.butler.normal.values import ClusterValues, read_defaults

DISABLED, OPTIONAL, ENFORCED = "Disabled", "Optional", "Enforced"


@dataclass(frozen=True, slots=True)
class ConfigModel:
    mode: str = DISABLED
    namespace: str = TENANTS_NAMESPACE
    provider: ProviderRef | None = None
    limits: Limits = field(default_factory=Limits)
    values: ClusterValues = field(default_factory=ClusterValues)
    load_balancer: AddressSet = NONE  # addresses of the platform: API endpoints and Services of the management cluster
    addon_versions: AddonVersions = field(default_factory=AddonVersions)
    exposure: Exposure = field(default_factory=Exposure)
    resources: ControlPlaneResources | None = None
    image_factory: ImageFactory | None = None
    ssh_key: str = ""
    time_servers: tuple[str, ...] = ()


def normal_butler_config(config: ButlerConfig | None) -> Normal[ConfigModel]:
    """Without a ButlerConfig the platform runs with built-in settings."""
    if config is None:
        return Normal(ConfigModel())
    reading, spec = Reading(), config.spec
    if config.metadata.name != CONFIG_NAME:
        reading.warn(f"only the ButlerConfig with the name {CONFIG_NAME} is read; this one has no effect")
    limits = read_default_limits(reading, spec.default_team_limits)
    pool = spec.platform.metallb_pool if spec.platform else ""
    addresses = read_range(reading, "spec.platform.metalLBPool", pool)
    check_exposure(reading, "spec.controlPlaneExposure", spec.control_plane_exposure)
    if spec.cluster_defaults is not None:
        check_default_addons(reading, "spec.clusterDefaults", spec.cluster_defaults.default_addons)
    return reading.result(lambda: _model(spec, limits, addresses))


def _model(spec: ButlerConfigSpec, limits: Limits, addresses: AddressSet) -> ConfigModel:
    return ConfigModel(
        mode=(spec.multi_tenancy.mode if spec.multi_tenancy else "") or DISABLED,
        namespace=spec.default_namespace or TENANTS_NAMESPACE,
        provider=spec.default_provider_config_ref,
        limits=limits,
        values=read_defaults(spec.cluster_defaults),
        load_balancer=addresses,
        addon_versions=spec.default_addon_versions or AddonVersions(),
        exposure=spec.control_plane_exposure or Exposure(),
        resources=spec.default_control_plane_resources,
        image_factory=spec.image_factory,
        ssh_key=spec.ssh_authorized_key,
        time_servers=tuple(spec.default_time_servers),
    )


def check_exposure(reading: Reading, path: str, exposure: Exposure | None) -> None:
    if exposure is None or exposure.mode not in ("Ingress", "Gateway"):
        return
    if not exposure.hostname:
        reading.missing(f"{path}.hostname", f"mode {exposure.mode} needs a host name, for example *.k8s.example.com")
    if exposure.mode == "Gateway" and not exposure.gateway_ref:
        reading.missing(f"{path}.gatewayRef", "mode Gateway needs a Gateway, as NAMESPACE/NAME")
