"""ClusterResourceSet: manifests put into clusters once they are up."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector, Long, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Required, Size


class ResourceBinding(Model):
    """A resource, and when it was applied."""

    applied: Required[bool] = False
    hash: Annotated[str, Size(1, 256)] = ""
    kind: Required[Annotated[str, Enum(("Secret", "ConfigMap"))]] = ""
    last_applied_time: Time | None = None
    name: Required[Annotated[str, Size(1, 253)]] = ""


class ResourceSetBinding(Model):
    """What was applied of one set."""

    cluster_resource_set_name: Required[Annotated[str, Size(1, 253)]] = ""
    resources: Annotated[list[ResourceBinding], Size(None, 100)] = []


class ClusterResourceSetBindingSpec(Model):
    """The Cluster, and the sets that were applied to it."""

    bindings: Annotated[list[ResourceSetBinding], Size(None, 100)] = []
    cluster_name: Annotated[str, Size(1, 63)] = ""


@resource("addons.cluster.x-k8s.io", "v1beta1", "ClusterResourceSetBinding", "clusterresourcesetbindings")
class ClusterResourceSetBinding(Object):
    """A ClusterResourceSetBinding records which manifests were applied to one Cluster."""

    spec: ClusterResourceSetBindingSpec = msgspec.field(default_factory=ClusterResourceSetBindingSpec)


class ResourceRef(Model):
    """A ConfigMap or Secret with manifests."""

    kind: Required[Annotated[str, Enum(("Secret", "ConfigMap"))]] = ""
    name: Required[Annotated[str, Size(1, 253)]] = ""


class ClusterResourceSetSpec(Model):
    """Which Clusters get which resources, and how often."""

    cluster_selector: Required[LabelSelector] = {}
    resources: Annotated[list[ResourceRef], Size(None, 100)] = []
    strategy: Annotated[str, Enum(("ApplyOnce", "Reconcile"))] = ""


class ClusterResourceSetV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []


class ClusterResourceSetStatus(Model):
    """How far the set is."""

    conditions: list[OldCondition] = []
    observed_generation: Long = 0
    v1beta2: ClusterResourceSetV1Beta2Status | None = None


@resource("addons.cluster.x-k8s.io", "v1beta1", "ClusterResourceSet", "clusterresourcesets")
class ClusterResourceSet(Object):
    """A ClusterResourceSet applies manifests to each Cluster that its selector matches."""

    spec: ClusterResourceSetSpec = msgspec.field(default_factory=ClusterResourceSetSpec)
    status: ClusterResourceSetStatus = msgspec.field(default_factory=ClusterResourceSetStatus)
