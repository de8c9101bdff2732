"""ButlerConfig: settings of the whole platform."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    ClusterDefaults,
    ControlPlaneResources,
    Exposure,
    LocalRef,
    NamespacedRef,
    PlatformPart,
    Positive,
    ProviderRef,
    SecretRef,
)
from homeport.api.field import Conditions, Long, Quantity, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Pattern, Range, Required

MODES = ("Enforced", "Optional", "Disabled")


class MultiTenancy(Model):
    """Whether clusters belong to teams. Set mode to Disabled, Optional or Enforced."""

    mode: Annotated[str, Enum(MODES)] = ""


class DefaultTeamLimits(Model):
    """Limits of teams that have none of their own."""

    max_clusters: Positive | None = None
    max_workers_per_cluster: Positive | None = None
    max_total_cpu: Quantity = msgspec.field(default="", name="maxTotalCPU")
    max_total_memory: Quantity = ""
    max_total_storage: Quantity = ""


class AddonVersions(Model):
    """Versions of add-ons for clusters that do not set them."""

    cilium: str = ""
    metallb: str = ""
    cert_manager: str = ""
    longhorn: str = ""
    traefik: str = ""
    fluxcd: str = ""


class GitProvider(Model):
    """A service with Git repositories."""

    type: Required[Annotated[str, Enum(("github", "gitlab", "bitbucket"))]] = ""
    url: str = ""
    organization: str = ""
    secret_ref: Required[LocalRef] = msgspec.field(default_factory=LocalRef)


class ImageFactory(Model):
    """Talos image factory that images come from: set url for one of your own."""

    url: Required[Annotated[str, Pattern("^https?://")]] = ""
    credentials_ref: SecretRef | None = None
    default_schematic_id: str = ""
    auto_sync: bool | None = None


class Pipeline(Model):
    """Where logs, metrics and traces are sent."""

    cluster_ref: NamespacedRef | None = None
    log_endpoint: str = ""
    metric_endpoint: str = ""
    trace_endpoint: str = ""


class AutoEnroll(Model):
    """Collectors that each new cluster gets."""

    vector_agent: bool = False
    prometheus: bool = False
    otel_collector: bool = False


class LogCollection(Model):
    """Logs that are collected."""

    pod_logs: bool = False
    journald: bool = False
    kubernetes_events: bool = False


class MetricCollection(Model):
    """Metrics that are collected."""

    enabled: bool = False
    retention: str = ""


class Collection(Model):
    """What is collected from tenant clusters."""

    auto_enroll: AutoEnroll | None = None
    logs: LogCollection | None = None
    metrics: MetricCollection | None = None


class Observability(Model):
    """Observability of tenant clusters. Homeport keeps this field and does not act on it."""

    pipeline: Pipeline | None = None
    collection: Collection | None = None


class Audit(Model):
    """An audit log of the platform's server. Homeport keeps this field and does not act on it."""

    enabled: bool | None = None
    webhook_url: str = ""
    buffer_size: Annotated[int, Range(100, 100000)] | None = None


class Notifications(Model):
    """Notifications of the platform's server. Homeport keeps this field and does not act on it."""

    webhook_url: str = ""


class ButlerConfigSpec(Model):
    """Settings of the platform. Everything that is left out has a default."""

    multi_tenancy: MultiTenancy | None = None
    default_namespace: str = ""
    default_provider_config_ref: ProviderRef | None = None
    default_team_limits: DefaultTeamLimits | None = None
    default_addon_versions: AddonVersions | None = None
    cluster_defaults: ClusterDefaults | None = None
    platform: PlatformPart | None = None
    git_provider: GitProvider | None = None
    control_plane_exposure: Exposure | None = None
    default_control_plane_resources: ControlPlaneResources | None = None
    image_factory: ImageFactory | None = None
    ssh_authorized_key: str = ""
    default_time_servers: list[str] = []
    observability: Observability | None = None
    audit: Audit | None = None
    notifications: Notifications | None = None


class GitProviderStatus(Model):
    """State of the connection to the Git service."""

    connected: bool = False
    username: str = ""
    last_validated: Time | None = None
    message: str = ""


class ObservabilityStatus(Model):
    """State of the observability pipeline."""

    pipeline_ready: bool = False
    enrolled_count: int = 0
    total_count: int = 0


class ButlerConfigStatus(Model):
    """State of the platform."""

    conditions: Conditions = []
    observed_generation: Long = 0
    mode: str = ""
    team_count: int = 0
    cluster_count: int = 0
    git_provider: GitProviderStatus | None = None
    control_plane_exposure_mode: str = ""
    tcp_proxy_required: bool = False
    observability: ObservabilityStatus | None = None


@resource(GROUP, VERSION, "ButlerConfig", "butlerconfigs", namespaced=False)
class ButlerConfig(Object):
    """A ButlerConfig holds the settings of the platform. Only the one with the name butler is read."""

    spec: ButlerConfigSpec = msgspec.field(default_factory=ButlerConfigSpec)
    status: ButlerConfigStatus = msgspec.field(default_factory=ButlerConfigStatus)
