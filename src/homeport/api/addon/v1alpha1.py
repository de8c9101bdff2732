"""ClusterAddon: software that is brought into workload clusters, kept there as it is written, upgraded and removed."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector, Long, Name, Namespace, Raw, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Enum, ListType, Pattern, Preserve, Required, Size

GROUP = "addons.homeport.dev"

ClusterName = Annotated[str, Size(1, 63)]
AddonName = Annotated[str, Size(1, 63), Pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
ReleaseName = Annotated[str, Size(1, 53), Pattern("^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
Duration = Annotated[str, Size(1, 32), Pattern("^([0-9]+(h|m|s))+$")]
Values = Annotated[dict[str, Raw], Preserve()]


class NameRef(Model):
    """An object of the same namespace, by name."""

    name: Required[Name] = ""


class ManifestSource(Model):
    """Manifests: in a ConfigMap, in a Secret, or inline."""

    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None
    inline: Annotated[str, Size(1, 262144)] = ""
    template: bool = False


class ValuesSource(Model):
    """Values of a chart: in a ConfigMap or in a Secret."""

    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None
    key: Annotated[str, Default("values.yaml"), Size(1, 253)] = ""
    optional: bool = False
    template: bool = False


class ChartSource(Model):
    """A chart that is not in the catalogue: of a repository, or in a ConfigMap or Secret."""

    repository: Annotated[str, Size(1, 1024), Pattern("^(https?|oci)://.+")] = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None
    path: Annotated[str, Size(1, 1024)] = ""
    name: Annotated[str, Size(1, 253)] = ""
    digest: Annotated[str, Pattern("^sha256:[0-9a-f]{64}$")] = ""
    credentials_ref: NameRef | None = None
    insecure_http: bool = msgspec.field(default=False, name="insecureHTTP")


class CopiedSecret(Model):
    """A Secret of the management cluster that the add-on needs in the workload cluster."""

    name: Required[Name] = ""
    target_name: Name = ""
    target_namespace: Namespace = ""


class Dependency(Model):
    """A ClusterAddon that must be Ready first."""

    name: Required[Name] = ""


class DriftRule(Model):
    """Fields that others may change."""

    api_version: str = ""
    kind: Required[Annotated[str, Size(1, 63)]] = ""
    namespace: str = ""
    name: str = ""
    paths: Required[Annotated[list[Annotated[str, Pattern("^/.+")]], Size(1, 100), ListType("atomic")]] = []


class ClusterAddonSpec(Model):
    """What is installed, and in which Clusters."""

    cluster_name: ClusterName = ""
    cluster_selector: LabelSelector = {}
    keep_on_selector_mismatch: bool = False
    addon: AddonName = ""
    chart: ChartSource | None = None
    manifests: Annotated[list[ManifestSource], Size(None, 100), ListType("atomic")] = []
    version: Annotated[str, Size(1, 128)] = ""
    parameters: Values = {}
    values: Values = {}
    values_template: Annotated[str, Size(1, 262144)] = ""
    values_from: Annotated[list[ValuesSource], Size(None, 100), ListType("atomic")] = []
    secrets: Annotated[list[CopiedSecret], Size(None, 100), ListType("atomic")] = []
    namespace: Namespace = ""
    create_namespace: Annotated[bool, Default(True)] = True
    release_name: ReleaseName = ""
    skip_crds: bool = msgspec.field(name="skipCRDs", default=False)
    disable_hooks: bool = False
    depends_on: Annotated[list[Dependency], Size(None, 100), ListType("map", ("name",))] = []
    deletion_policy: Annotated[str, Enum(("Delete", "Orphan")), Default("Delete")] = ""
    sync_policy: Annotated[str, Enum(("Continuous", "OnChange")), Default("Continuous")] = ""
    conflict_policy: Annotated[str, Enum(("Refuse", "Adopt", "Yield")), Default("Refuse")] = ""
    drift_ignore: Annotated[list[DriftRule], Size(None, 100), ListType("atomic")] = []
    wait: Annotated[bool, Default(True)] = True
    timeout: Annotated[Duration, Default("10m")] = ""
    paused: bool = False


class ReleaseStatus(Model):
    """The Helm release of a chart."""

    name: str = ""
    namespace: str = ""
    revision: int = 0
    status: str = ""


class ClusterAddonCluster(Model):
    """The add-on in one Cluster."""

    name: Required[str] = ""
    addon: str = ""
    ready: Required[bool] = False
    phase: str = ""
    version: str = ""
    reason: str = ""
    message: str = ""


class ClusterAddonStatus(Model):
    """State of the add-on."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: str = ""
    version: str = ""
    target_version: str = ""
    release: ReleaseStatus = msgspec.field(default_factory=ReleaseStatus)
    object_count: int = 0
    digest: str = ""
    attempted_at: Time | None = None
    clusters: Annotated[list[ClusterAddonCluster], ListType("map", ("name",))] = []
    cluster_count: str = ""


@resource(GROUP, "v1alpha1", "ClusterAddon", "clusteraddons")
class ClusterAddon(Object):
    """A ClusterAddon installs a chart or manifests in one Cluster, or in each Cluster that its selector matches."""

    spec: Required[ClusterAddonSpec] = msgspec.field(default_factory=ClusterAddonSpec)
    status: ClusterAddonStatus = msgspec.field(default_factory=ClusterAddonStatus)
