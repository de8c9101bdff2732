"""ClusterResourceSet: manifests put into clusters once they are up."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, DeprecatedConditions, LabelSelector, NonEmpty, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class ResourceBinding(Model):
    """A resource, and when it was applied."""

    applied: Required[bool | None] = None
    hash: Annotated[str, Size(1, 256)] = ""
    kind: Required[Annotated[str, Enum(("Secret", "ConfigMap"))]] = ""
    last_applied_time: Time | None = None
    name: Required[Annotated[str, Size(1, 253)]] = ""


class ResourceSetBinding(Model):
    """What was applied of one set."""

    cluster_resource_set_name: Required[Annotated[str, Size(1, 253)]] = ""
    resources: Annotated[list[ResourceBinding], Size(None, 100), ListType("atomic")] = []


class ClusterResourceSetBindingSpec(Model):
    """The Cluster, and the sets that were applied to it."""

    bindings: Annotated[list[ResourceSetBinding], Size(None, 100), ListType("atomic")] = []
    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""


@resource("addons.cluster.x-k8s.io", "v1beta2", "ClusterResourceSetBinding", "clusterresourcesetbindings")
class ClusterResourceSetBinding(Object):
    """A ClusterResourceSetBinding records which manifests were applied to one Cluster."""

    spec: Required[ClusterResourceSetBindingSpec] = msgspec.field(default_factory=ClusterResourceSetBindingSpec)


class ResourceRef(Model):
    """A ConfigMap or Secret with manifests."""

    kind: Required[Annotated[str, Enum(("Secret", "ConfigMap"))]] = ""
    name: Required[Annotated[str, Size(1, 253)]] = ""


class ClusterResourceSetSpec(Model):
    """Which Clusters get which resources, and how often."""

    cluster_selector: Required[LabelSelector] = {}
    resources: Required[Annotated[list[ResourceRef], Size(1, 100), ListType("atomic")]] = []
    strategy: Annotated[str, Enum(("ApplyOnce", "Reconcile"))] = ""


class ClusterResourceSetStatus(NonEmpty):
    """How far the set is."""

    conditions: Conditions = []
    deprecated: DeprecatedConditions = msgspec.field(default_factory=DeprecatedConditions)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0


@resource("addons.cluster.x-k8s.io", "v1beta2", "ClusterResourceSet", "clusterresourcesets")
class ClusterResourceSet(Object):
    """A ClusterResourceSet applies manifests to each Cluster that its selector matches."""

    spec: Required[ClusterResourceSetSpec] = msgspec.field(default_factory=ClusterResourceSetSpec)
    status: ClusterResourceSetStatus = msgspec.field(default_factory=ClusterResourceSetStatus)
