"""Types."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector, Long, OldCondition, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Required, Size


class ResourceBinding(Model):
    applied: Required[bool] = False
    hash: Annotated[str, Size(1, 256)] = ""
    kind: Required[Annotated[str, Enum(("Secret", "ConfigMap"))]] = ""
    last_applied_time: Time | None = None
    name: Required[Annotated[str, Size(1, 253)]] = ""


class ResourceSetBinding(Model):
    cluster_resource_set_name: Required[Annotated[str, Size(1, 253)]] = ""
    resources: Annotated[list[ResourceBinding], Size(None, 100)] = []


class ClusterResourceSetBindingSpec(Model):
    bindings: Annotated[list[ResourceSetBinding], Size(None, 100)] = []
    cluster_name: Annotated[str, Size(1, 63)] = ""


@resource("addons.cluster.x-k8s.io", "v1beta1", "ClusterResourceSetBinding", "clusterresourcesetbindings")
class ClusterResourceSetBinding(Object):
    spec: ClusterResourceSetBindingSpec = msgspec.field(default_factory=ClusterResourceSetBindingSpec)


class ResourceRef(Model):
    kind: Required[Annotated[str, Enum(("Secret", "ConfigMap"))]] = ""
    name: Required[Annotated[str, Size(1, 253)]] = ""


class ClusterResourceSetSpec(Model):
    cluster_selector: Required[LabelSelector] = {}
    resources: Annotated[list[ResourceRef], Size(None, 100)] = []
    strategy: Annotated[str, Enum(("ApplyOnce", "Reconcile"))] = ""


class ClusterResourceSetV1Beta2Status(Model):
    conditions: Conditions = []


class ClusterResourceSetStatus(Model):
    conditions: list[OldCondition] = []
    observed_generation: Long = 0
    v1beta2: ClusterResourceSetV1Beta2Status | None = None


@resource("addons.cluster.x-k8s.io", "v1beta1", "ClusterResourceSet", "clusterresourcesets")
class ClusterResourceSet(Object):
    spec: ClusterResourceSetSpec = msgspec.field(default_factory=ClusterResourceSetSpec)
    status: ClusterResourceSetStatus = msgspec.field(default_factory=ClusterResourceSetStatus)
