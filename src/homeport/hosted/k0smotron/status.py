"""What a k0smotron Cluster reports of its Pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from homeport.api.k0smotron.v1beta2 import Cluster
from homeport.capi.name import Condition
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.machinery.condition import Status, find

FUNCTIONAL = "ControlPlaneFunctional"
EXPOSED = "ControlPlaneExposed"
CERTIFICATES = "CertificatesAvailable"
KUBECONFIG = "KubeconfigSecretAvailable"
UP_TO_DATE = "ControlPlaneUpToDate"
SCALING = Condition.CONTROL_PLANE_SCALING
DELETING = "Deleting"
AVAILABLE = "Available"

NOT_FOUND = "NotFound"
CREATED = "Created"
INTERNAL_ERROR = "InternalError"


class Pods(NamedTuple):
    """What a StatefulSet says of its Pods."""

    desired: int = 0
    replicas: int = 0
    ready: int = 0
    updated: int = 0

    @classmethod
    def of(cls, statefulset: Mapping[str, Any] | None) -> Pods:
        if statefulset is None:
            return cls()
        status, meta = statefulset.get("status") or {}, statefulset.get("metadata") or {}
        if int(status.get("observedGeneration") or 0) < int(meta.get("generation") or 0):
            # It counts Pods of an older template as updated.
            status = {**status, "updatedReplicas": 0}
        desired = (statefulset.get("spec") or {}).get("replicas", 1)
        counts = (status.get(name) or 0 for name in ("replicas", "readyReplicas", "updatedReplicas"))
        return cls(int(desired), *(int(each) for each in counts))


class ConditionReport(NamedTuple):
    type: str
    status: Status
    reason: str
    message: str = ""


def was_observed(cluster: Cluster) -> bool:
    """Whether the cluster in which the Pods run was ever reached: before that nothing is made there."""
    return find(cluster.status.conditions, SCALING) is not None


def scaling(pods: Pods | None, replicas: int) -> ConditionReport:
    if pods is None:
        return ConditionReport(SCALING, "False", NOT_FOUND, "The StatefulSet does not exist yet")
    if pods.replicas < replicas:
        return ConditionReport(SCALING, "True", "ScalingUp", f"{pods.replicas} of {replicas} replicas exist")
    if pods.replicas > replicas:
        return ConditionReport(SCALING, "True", "ScalingDown", f"{pods.replicas} replicas exist, {replicas} desired")
    return ConditionReport(SCALING, "False", "ControlPlaneWithDesiredReplicas")


def up_to_date(pods: Pods | None, replicas: int) -> ConditionReport:
    if pods is None:
        return ConditionReport(UP_TO_DATE, "False", NOT_FOUND, "The StatefulSet does not exist yet")
    if pods.updated >= replicas and pods.replicas <= max(replicas, pods.updated):
        return ConditionReport(UP_TO_DATE, "True", "AllReplicasUpToDate")
    text = f"{pods.updated} of {replicas} replicas run the desired version and configuration"
    return ConditionReport(UP_TO_DATE, "False", "NotAllReplicasUpToDate", text)


def fill_counts(cluster: Cluster, subject: Subject, pods: Pods | None) -> None:
    status, found = cluster.status, pods or Pods()
    status.replicas, status.ready_replicas, status.updated_replicas = found.replicas, found.ready, found.updated
    status.selector = ",".join(f"{name}={value}" for name, value in sorted(subject.pod_selector.items()))
    status.deprecated.v1beta1.ready = pods is not None and found.ready == subject.spec.replicas
