"""Templates: what clusters, providers and services are made from."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, Long
from homeport.api.k0rdent.v1beta1.part import (
    GROUP,
    IMMUTABLE,
    VERSION,
    Block,
    Interval,
    NameRef,
    Strings,
    Text,
    Values,
)
from homeport.api.k0rdent.v1beta1.service import HelmOptions
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Pattern, Preserve, Required, Rule, Size

SOURCE_KINDS = ("ConfigMap", "Secret", "GitRepository", "Bucket", "OCIRepository")


def exactly_one(*names: str) -> tuple[Rule, ...]:
    """Exactly one of the fields is set."""
    count = " + ".join(f"(has(self.{each}) ? 1 : 0)" for each in names)
    return (Rule(f"({count}) == 1", f"set exactly one of {', '.join(names)}"),)


class ChartRef(Model):
    """Reference to a HelmChart or OCIRepository that has the chart."""

    api_version: str = ""
    kind: Required[Annotated[str, Enum(("OCIRepository", "HelmChart", "ExternalArtifact"))]] = ""
    name: Required[Text] = ""
    namespace: Annotated[str, Size(1, 63)] = ""


class ChartRepository(Model):
    """Where charts come from."""

    api_version: str = ""
    kind: Required[Annotated[str, Enum(("HelmRepository", "GitRepository", "Bucket"))]] = ""
    name: Required[str] = ""


class ChartSpec(Model):
    """Chart in a repository: chart, version and sourceRef."""

    __schema__ = (
        Rule("!has(self.verify) || self.sourceRef.kind == 'HelmRepository'", "verify needs a HelmRepository"),
    )

    chart: Required[str] = ""
    version: str = ""
    source_ref: ChartRepository = msgspec.field(default_factory=ChartRepository)
    interval: Interval = ""
    reconcile_strategy: Annotated[str, Enum(("ChartVersion", "Revision"))] = ""
    values_files: Strings = []
    ignore_missing_values_files: bool = False
    suspend: bool = False
    verify: Block | None = None


class LocalSource(Model):
    """An object of this API server that holds manifests or a chart."""

    kind: Required[Annotated[str, Enum(SOURCE_KINDS)]] = ""
    name: Required[str] = ""
    namespace: str = ""


class GitRef(Model):
    """A commit of a repository."""

    branch: str = ""
    tag: str = ""
    semver: str = ""
    commit: str = ""
    name: str = ""


class GitSource(Model):
    """A Git repository."""

    __schema__ = (Preserve(),)

    url: Required[Annotated[str, Pattern("^(http|https|ssh)://.*$")]] = ""
    ref: GitRef | None = None
    interval: Interval = ""
    secret_ref: NameRef | None = None


class OciRef(Model):
    """A version of an artifact."""

    tag: str = ""
    semver: str = ""
    semver_filter: str = ""
    digest: str = ""


class OciSource(Model):
    """An artifact of a registry."""

    __schema__ = (Preserve(),)

    url: Required[Annotated[str, Pattern("^oci://.*$")]] = ""
    ref: OciRef | None = None
    interval: Interval = ""
    secret_ref: NameRef | None = None
    insecure: bool = False


class RemoteSource(Model):
    """A place outside of this API server."""

    __schema__ = exactly_one("git", "bucket", "oci")

    git: GitSource | None = None
    bucket: Block | None = None
    oci: OciSource | None = None


class SourceSpec(Model):
    """Where manifests come from."""

    __schema__ = exactly_one("localSourceRef", "remoteSourceSpec")

    local_source_ref: LocalSource | None = None
    remote_source_spec: RemoteSource | None = None
    deployment_type: Annotated[str, Enum(("Local", "Remote"))] = ""
    path: str = ""


class HelmSpec(Model):
    """The chart of a template."""

    __schema__ = exactly_one("chartSpec", "chartRef", "chartSource")

    chart_spec: ChartSpec | None = None
    chart_ref: ChartRef | None = None
    chart_source: SourceSpec | None = None


class TemplateStatus(Model):
    """What the chart of a template says about itself."""

    valid: bool = False
    validation_error: str = ""
    description: str = ""
    chart_ref: ChartRef | None = None
    chart_version: str = ""
    config: Values = {}
    schema_config_map_name: str = ""
    observed_generation: Long = 0


class ClusterTemplateSpec(Model):
    """What clusters are made from. It can't be changed: create another template, and a chain that leads to it."""

    __schema__ = (IMMUTABLE,)

    helm: Required[HelmSpec] = msgspec.field(default_factory=HelmSpec)
    providers: Strings = []
    provider_contracts: dict[str, str] = {}
    k8s_version: str = ""


class ClusterTemplateStatus(TemplateStatus):
    providers: Strings = []
    provider_contracts: dict[str, str] = {}
    k8s_version: str = ""


@resource(GROUP, VERSION, "ClusterTemplate", "clustertemplates")
class ClusterTemplate(Object):
    """A ClusterTemplate is a blueprint for clusters: a chart, its default values and their schema."""

    spec: ClusterTemplateSpec = msgspec.field(default_factory=ClusterTemplateSpec)
    status: ClusterTemplateStatus = msgspec.field(default_factory=ClusterTemplateStatus)


class ProviderTemplateSpec(Model):
    """What a provider of the management plane is made from."""

    __schema__ = (IMMUTABLE,)

    helm: HelmSpec = msgspec.field(default_factory=HelmSpec)
    providers: Strings = []
    capi_contracts: dict[str, str] = {}


class ProviderTemplateStatus(TemplateStatus):
    providers: Strings = []
    capi_contracts: dict[str, str] = {}


@resource(GROUP, VERSION, "ProviderTemplate", "providertemplates", namespaced=False)
class ProviderTemplate(Object):
    """A ProviderTemplate describes a provider that Management can enable."""

    spec: ProviderTemplateSpec = msgspec.field(default_factory=ProviderTemplateSpec)
    status: ProviderTemplateStatus = msgspec.field(default_factory=ProviderTemplateStatus)


class ServiceTemplateSpec(Model):
    """What a service is made from: a chart, a kustomization or manifests."""

    __schema__ = (IMMUTABLE, *exactly_one("helm", "kustomize", "resources"))

    helm: HelmSpec | None = None
    kustomize: SourceSpec | None = None
    resources: SourceSpec | None = None
    version: str = ""
    k8s_constraint: str = ""
    helm_options: HelmOptions | None = None


class SourceStatus(Model):
    """State of the source of a ServiceTemplate."""

    kind: Required[str] = ""
    name: Required[str] = ""
    namespace: Required[str] = ""
    artifact: Block | None = None
    conditions: Conditions = []
    observed_generation: Long = 0


class ServiceTemplateStatus(TemplateStatus):
    k8s_constraint: str = ""
    source_status: SourceStatus | None = None


@resource(GROUP, VERSION, "ServiceTemplate", "servicetemplates")
class ServiceTemplate(Object):
    """A ServiceTemplate describes a service that clusters can have."""

    spec: ServiceTemplateSpec = msgspec.field(default_factory=ServiceTemplateSpec)
    status: ServiceTemplateStatus = msgspec.field(default_factory=ServiceTemplateStatus)
