"""Sources of charts and manifests: HelmRepository, HelmChart, OCIRepository and GitRepository.

Templates refer to them; nothing else reads them.

Fields that are not listed here are stored as they were written.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, Long
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Pattern, Preserve, Required

GROUP = "source.toolkit.fluxcd.io"
VERSION = "v1"


class SecretName(Model):
    """A Secret of the same namespace."""

    name: Required[str] = ""


class Part(Model):
    """A part that is stored as it was written."""

    __schema__ = (Preserve(),)


class SourceState(Model):
    """What Flux reports, where it runs. Homeport writes nothing here."""

    __schema__ = (Preserve(),)

    conditions: Conditions = []
    observed_generation: Long = 0


class HelmRepositorySpec(Model):
    """The address of the repository, and how to reach it."""

    __schema__ = (Preserve(),)

    url: Required[Annotated[str, Pattern("^(http|https|oci)://.*$")]] = ""
    type: Annotated[str, Enum(("default", "oci"))] = ""
    secret_ref: SecretName | None = None
    cert_secret_ref: SecretName | None = None
    pass_credentials: bool = False
    insecure: bool = False
    provider: str = ""


@resource(GROUP, VERSION, "HelmRepository", "helmrepositories")
class HelmRepository(Object):
    """A HelmRepository is a place that has charts: an HTTP repository, or a registry."""

    spec: Required[HelmRepositorySpec] = msgspec.field(default_factory=HelmRepositorySpec)
    status: SourceState = msgspec.field(default_factory=SourceState)


class SourceReference(Model):
    """A repository of the same namespace."""

    api_version: str = ""
    kind: Required[Annotated[str, Enum(("HelmRepository", "GitRepository", "Bucket"))]] = ""
    name: Required[str] = ""


class HelmChartSpec(Model):
    """Chart in a repository: chart, version and sourceRef."""

    __schema__ = (Preserve(),)

    chart: Required[str] = ""
    version: str = ""
    source_ref: Required[SourceReference] = msgspec.field(default_factory=SourceReference)
    values_files: list[str] = []


@resource(GROUP, VERSION, "HelmChart", "helmcharts")
class HelmChart(Object):
    """A HelmChart is a chart in one version, which several templates can refer to."""

    spec: Required[HelmChartSpec] = msgspec.field(default_factory=HelmChartSpec)
    status: SourceState = msgspec.field(default_factory=SourceState)


class ArtifactReference(Model):
    """A version of an artifact."""

    tag: str = ""
    semver: str = ""
    semver_filter: str = ""
    digest: str = ""


class OCIRepositorySpec(Model):
    """The address of the artifact, and how to reach it."""

    __schema__ = (Preserve(),)

    url: Required[Annotated[str, Pattern("^oci://.*$")]] = ""
    ref: ArtifactReference | None = None
    secret_ref: SecretName | None = None
    cert_secret_ref: SecretName | None = None
    insecure: bool = False
    provider: str = ""


@resource(GROUP, VERSION, "OCIRepository", "ocirepositories")
class OCIRepository(Object):
    """An OCIRepository is one chart of a registry."""

    spec: Required[OCIRepositorySpec] = msgspec.field(default_factory=OCIRepositorySpec)
    status: SourceState = msgspec.field(default_factory=SourceState)


class CommitReference(Model):
    """A commit. Of several fields the first of commit, name, semver, tag and branch counts."""

    branch: str = ""
    tag: str = ""
    semver: str = ""
    name: str = ""
    commit: str = ""


class GitRepositorySpec(Model):
    """The address of the repository, and how to reach it."""

    __schema__ = (Preserve(),)

    url: Required[Annotated[str, Pattern("^(http|https|ssh)://.*$")]] = ""
    ref: CommitReference | None = None
    secret_ref: SecretName | None = None
    interval: str = ""
    provider: str = ""
    ignore: str = ""
    recurse_submodules: bool = False
    sparse_checkout: list[str] = []
    include: list[Part] = []
    verify: Part | None = None
    proxy_secret_ref: SecretName | None = None


@resource(GROUP, VERSION, "GitRepository", "gitrepositories")
class GitRepository(Object):
    """A GitRepository is a Git repository that has charts or manifests."""

    spec: Required[GitRepositorySpec] = msgspec.field(default_factory=GitRepositorySpec)
    status: SourceState = msgspec.field(default_factory=SourceState)
