"""Which built-in kind behaves how: its strategy, and what differs from the usual in how it is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from homeport.apiserver.kinds.check import dotless_label
from homeport.apiserver.kinds.cluster import certificate, event, namespace, node, quota
from homeport.apiserver.kinds.cluster.apiservice import ApiService
from homeport.apiserver.kinds.cluster.rbac import GROUP as RBAC
from homeport.apiserver.kinds.cluster.rbac import Binding, Role
from homeport.apiserver.kinds.cluster.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)
from homeport.apiserver.kinds.cluster.webhookconfig import WebhookConfiguration
from homeport.apiserver.kinds.config import ConfigMap, LimitRange
from homeport.apiserver.kinds.network.allocation import Allocator
from homeport.apiserver.kinds.network.endpoint import DEPRECATED, Endpoints, EndpointSlice
from homeport.apiserver.kinds.network.networking import Ingress, IngressClass, NetworkPolicy
from homeport.apiserver.kinds.network.service import Service
from homeport.apiserver.kinds.pod import pod
from homeport.apiserver.kinds.pod.runtimeclass import RuntimeClass
from homeport.apiserver.kinds.secret import Secret
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.kinds.workload import autoscalerversion, autoscaling, replicas
from homeport.apiserver.kinds.workload.job import CronJob, Job
from homeport.apiserver.kinds.workload.policy import Lease, PodDisruptionBudget, PriorityClass
from homeport.apiserver.kinds.workload.workload import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from homeport.apiserver.name import path_segment
from homeport.apiserver.resource import ServedKind, Strategy, SubresourceStrategy

Shape = Callable[[ServedKind], None]


@dataclass(frozen=True, slots=True)
class Behaviour:
    strategy: Strategy
    shape: Shape = lambda served: None


def behaviours() -> dict[tuple[str, str], Behaviour]:
    """By group and kind. Kinds that are not listed have no rules beyond their schema."""
    return {**_core(), **_workloads(), **_cluster(), **_storage_and_network()}


def _core() -> dict[tuple[str, str], Behaviour]:
    return {
        ("", "Namespace"): Behaviour(
            namespace.Namespace(),
            _shape(
                naming=dotless_label,
                fields=("status.phase",),
                returns_deleted=True,
                subresource_strategies={"finalize": namespace.Finalize(), "status": namespace.Status()},
            ),
        ),
        ("", "Secret"): Behaviour(Secret(), _shape(fields=("type",))),
        ("", "ConfigMap"): Behaviour(ConfigMap(), _shape()),
        ("", "Service"): Behaviour(
            Service(Allocator()),
            _shape(naming=dotless_label, fields=("spec.clusterIP", "spec.type"), upsert=True, returns_deleted=True),
        ),
        ("", "Endpoints"): Behaviour(Endpoints(), _endpoints),
        ("", "ServiceAccount"): Behaviour(Plain(), _shape(returns_deleted=True)),
        ("", "Event"): Behaviour(event.Event(), _shape(fields=event.FIELDS, upsert=True)),
        ("", "Node"): Behaviour(
            node.Node(), _shape(fields=("spec.unschedulable",), subresource_strategies={"status": node.Status()})
        ),
        ("", "Pod"): Behaviour(pod.Pod(), _pods),
        ("", "PersistentVolumeClaim"): Behaviour(PersistentVolumeClaim(), _shape(returns_deleted=True)),
        ("", "PersistentVolume"): Behaviour(PersistentVolume(), _shape(returns_deleted=True)),
        ("", "LimitRange"): Behaviour(LimitRange(), _shape(upsert=True)),
        ("", "PodTemplate"): Behaviour(PodTemplate(), _shape(generation=True, returns_deleted=True)),
        ("", "ResourceQuota"): Behaviour(
            quota.ResourceQuota(), _shape(returns_deleted=True, subresource_strategies={"status": quota.Status()})
        ),
        ("", "ReplicationController"): Behaviour(
            ReplicationController(), _shape(generation=True, subresource_strategies={"status": replicas.REPLICA_SET})
        ),
    }


def _workloads() -> dict[tuple[str, str], Behaviour]:
    counted = _shape(generation=True)
    return {
        ("apps", "Deployment"): Behaviour(
            Deployment(),
            _shape(generation=True, annotations=True, subresource_strategies={"status": replicas.DEPLOYMENT}),
        ),
        ("apps", "StatefulSet"): Behaviour(
            StatefulSet(),
            _shape(naming=dotless_label, generation=True, subresource_strategies={"status": replicas.STATEFUL_SET}),
        ),
        ("apps", "DaemonSet"): Behaviour(
            DaemonSet(), _shape(generation=True, subresource_strategies={"status": replicas.DAEMON_SET})
        ),
        ("apps", "ReplicaSet"): Behaviour(
            ReplicaSet(), _shape(generation=True, subresource_strategies={"status": replicas.REPLICA_SET})
        ),
        ("apps", "ControllerRevision"): Behaviour(ControllerRevision(), _shape()),
        ("autoscaling", "HorizontalPodAutoscaler"): Behaviour(autoscaling.HorizontalPodAutoscaler(), _autoscalers),
        ("batch", "Job"): Behaviour(Job(), _shape(fields=("status.successful",), generation=True)),
        ("batch", "CronJob"): Behaviour(CronJob(), counted),
        ("policy", "PodDisruptionBudget"): Behaviour(
            PodDisruptionBudget(), _shape(generation=True, needs_version=True)
        ),
    }


def _cluster() -> dict[tuple[str, str], Behaviour]:
    hooks, hooked = "admissionregistration.k8s.io", _shape(generation=True, needs_version=True)
    return {
        ("discovery.k8s.io", "EndpointSlice"): Behaviour(EndpointSlice(), _shape(generation=True)),
        ("events.k8s.io", "Event"): Behaviour(event.Event(new=True), _events),
        (RBAC, "Role"): Behaviour(Role(namespaced=True), _rbac),
        (RBAC, "RoleBinding"): Behaviour(Binding(namespaced=True), _rbac),
        (RBAC, "ClusterRole"): Behaviour(Role(namespaced=False), _rbac),
        (RBAC, "ClusterRoleBinding"): Behaviour(Binding(namespaced=False), _rbac),
        ("coordination.k8s.io", "Lease"): Behaviour(Lease(), _shape(upsert=True, needs_version=True)),
        (hooks, "ValidatingWebhookConfiguration"): Behaviour(WebhookConfiguration(mutating=False), hooked),
        (hooks, "MutatingWebhookConfiguration"): Behaviour(WebhookConfiguration(mutating=True), hooked),
        ("certificates.k8s.io", "CertificateSigningRequest"): Behaviour(
            certificate.CertificateSigningRequest(),
            _shape(
                fields=("spec.signerName",),
                subresource_strategies={"approval": certificate.Approval(), "status": certificate.Status()},
            ),
        ),
    }


def _storage_and_network() -> dict[tuple[str, str], Behaviour]:
    storage, network = "storage.k8s.io", "networking.k8s.io"
    counted, attached = _shape(generation=True), _shape(returns_deleted=True, needs_version=True)
    return {
        (storage, "StorageClass"): Behaviour(StorageClass(), _shape(returns_deleted=True)),
        (storage, "VolumeAttachment"): Behaviour(VolumeAttachment(), attached),
        (storage, "CSINode"): Behaviour(CsiNode(), attached),
        (storage, "CSIDriver"): Behaviour(CsiDriver(), attached),
        (storage, "VolumeAttributesClass"): Behaviour(VolumeAttributesClass(), _shape(returns_deleted=True)),
        (storage, "CSIStorageCapacity"): Behaviour(CsiStorageCapacity(), _shape(needs_version=True)),
        (network, "Ingress"): Behaviour(Ingress(), counted),
        (network, "IngressClass"): Behaviour(IngressClass(), counted),
        (network, "NetworkPolicy"): Behaviour(NetworkPolicy(), counted),
        ("node.k8s.io", "RuntimeClass"): Behaviour(RuntimeClass(), _shape(upsert=True, needs_version=True)),
        ("scheduling.k8s.io", "PriorityClass"): Behaviour(PriorityClass(), counted),
        ("apiregistration.k8s.io", "APIService"): Behaviour(
            ApiService(), _shape(naming=path_segment, needs_version=True)
        ),
    }


def _shape(
    *,
    naming: Callable[[str], str | None] | None = None,
    fields: tuple[str, ...] = (),
    generation: bool = False,
    annotations: bool = False,
    upsert: bool = False,
    returns_deleted: bool = False,
    needs_version: bool = False,
    subresource_strategies: Mapping[str, SubresourceStrategy] | None = None,
) -> Shape:
    """How a kind is served. `generation`: it counts changes of its spec (and of its `annotations`); `upsert`: a PUT may
    create it.
    """

    def shape(served: ServedKind) -> None:
        if naming is not None:
            served.naming = naming
        served.field_names = fields
        served.spec_generation = generation
        served.annotation_generation = annotations
        served.create_on_update = upsert
        served.returns_deleted = returns_deleted
        served.needs_version = needs_version
        served.subresource_strategies = subresource_strategies or {}

    return shape


def _pods(served: ServedKind) -> None:
    subresource_strategies: dict[str, SubresourceStrategy] = {
        "ephemeralcontainers": pod.EphemeralContainers(),
        "resize": pod.Resize(),
    }
    _shape(fields=pod.FIELDS, generation=True, returns_deleted=True, subresource_strategies=subresource_strategies)(
        served
    )
    served.graceful = True


def _autoscalers(served: ServedKind) -> None:
    _shape(generation=True, subresource_strategies={"status": autoscaling.Status()})(served)
    served.convert = autoscalerversion.convert


def _endpoints(served: ServedKind) -> None:
    _shape(upsert=True)(served)
    for version in served.versions.values():
        version.deprecation = DEPRECATED


def _events(served: ServedKind) -> None:
    """Kept with the core group's Events, in their form."""
    _shape(fields=event.NEW_FIELDS, upsert=True)(served)
    served.stored_as = "events"
    served.known_as = ""
    served.storage = event.STORED
    served.convert = event.convert


_rbac = _shape(naming=path_segment, upsert=True)
