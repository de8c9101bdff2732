"""The objects that make a control plane Machine, as they should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig, KubeadmConfigSpec
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import wire
from homeport.capi import version as versions
from homeport.capi.name import (
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    CONTROL_PLANE_NAME_LABEL,
    PRE_TERMINATE_KCP_CLEANUP,
    REMEDIATION_FOR,
    Condition,
    label_value,
)
from homeport.capi.object.ownership import owner_reference

Json = dict[str, Any]

GATES = (
    Condition.NODE_KUBEADM_LABELS_AND_TAINTS_SET,
    Condition.API_SERVER_POD_HEALTHY,
    Condition.CONTROLLER_MANAGER_POD_HEALTHY,
    Condition.SCHEDULER_POD_HEALTHY,
)
ETCD_GATES = (Condition.ETCD_POD_HEALTHY, Condition.ETCD_MEMBER_HEALTHY)
_LOCAL_MODE = "ControlPlaneKubeletLocalMode"


def etcd_managed(kcp: KubeadmControlPlane) -> bool:
    return not kcp.spec.kubeadm_config_spec.cluster_configuration.etcd.external.endpoints


def machine_labels(kcp: KubeadmControlPlane, cluster: str) -> dict[str, str]:
    return {
        **kcp.spec.machine_template.metadata.labels,
        CLUSTER_NAME_LABEL: cluster,
        CONTROL_PLANE_LABEL: "",
        CONTROL_PLANE_NAME_LABEL: label_value(kcp.metadata.name),
    }


def machine_annotations(kcp: KubeadmControlPlane) -> dict[str, str]:
    return dict(kcp.spec.machine_template.metadata.annotations)


def readiness_gates(kcp: KubeadmControlPlane) -> list[Json]:
    """The built-in ones first; each once."""
    found = [{"conditionType": each} for each in (*GATES, *(ETCD_GATES if etcd_managed(kcp) else ()))]
    found += [wire(gate) for gate in kcp.spec.machine_template.spec.readiness_gates]
    return list({gate["conditionType"]: gate for gate in reversed(found)}.values())[::-1]


def deletion_timeouts(kcp: KubeadmControlPlane) -> Json:
    made: Json = wire(kcp.spec.machine_template.spec.deletion)
    return made


def machine(
    kcp: KubeadmControlPlane,
    cluster: str,
    name: str,
    *,
    bootstrap: Mapping[str, Any],
    infrastructure: Mapping[str, Any],
    domain: str = "",
    remediation: str = "",
) -> Json:
    """A new Machine. `bootstrap` and `infrastructure` are references to what was made for it."""
    annotations = {**machine_annotations(kcp), PRE_TERMINATE_KCP_CLEANUP: ""}
    if remediation:
        annotations[REMEDIATION_FOR] = remediation
    spec: Json = {
        "clusterName": cluster,
        "version": kcp.spec.version,
        "bootstrap": {"configRef": dict(bootstrap)},
        "infrastructureRef": dict(infrastructure),
        "readinessGates": readiness_gates(kcp),
    }
    timeouts = deletion_timeouts(kcp)
    taints = wire(kcp.spec.machine_template.spec.taints)
    for field, value in (("failureDomain", domain), ("deletion", timeouts), ("taints", taints)):
        if value:
            spec[field] = value
    return {
        "apiVersion": Machine.__resource__.api_version,
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": kcp.metadata.namespace,
            "labels": machine_labels(kcp, cluster),
            "annotations": annotations,
            "ownerReferences": [owner_reference(kcp, controller=True)],
        },
        "spec": spec,
    }


def kubeadm_spec(wished: KubeadmConfigSpec, version: str, *, join: bool) -> Json:
    """For `kubeadm init` or for `kubeadm join`. A join is known by joinConfiguration.controlPlane."""
    spec: Json = wire(wished)
    if join:
        spec.pop("initConfiguration", None)
        spec.setdefault("joinConfiguration", {}).setdefault("controlPlane", {})
    else:
        spec.pop("joinConfiguration", None)
    line = versions.parse(version).line
    if (1, 31) <= line < (1, 36):
        # The kubelet talks to the API server beside it: one of another version may not know its fields yet.
        gates = spec.setdefault("clusterConfiguration", {}).setdefault("featureGates", {})
        gates.setdefault(_LOCAL_MODE, True)
    return spec


def kubeadm_config(kcp: KubeadmControlPlane, cluster: str, name: str, *, join: bool) -> Json:
    spec = kubeadm_spec(kcp.spec.kubeadm_config_spec, kcp.spec.version, join=join)
    made: Json = {
        "apiVersion": KubeadmConfig.__resource__.api_version,
        "kind": "KubeadmConfig",
        "metadata": {
            "name": name,
            "namespace": kcp.metadata.namespace,
            "labels": machine_labels(kcp, cluster),
            "annotations": machine_annotations(kcp),
            # Not as its controller: that is the Machine, as soon as there is one.
            "ownerReferences": [owner_reference(kcp)],
        },
    }
    if spec:
        made["spec"] = spec
    return made


def machine_patch(kcp: KubeadmControlPlane, cluster: str, found: Machine) -> Json:
    """What changes on a Machine without replacing it, as a merge patch; {} if nothing does."""
    patch: Json = {}
    meta = _metadata_patch(found.metadata.labels, found.metadata.annotations, kcp, cluster)
    if PRE_TERMINATE_KCP_CLEANUP not in found.metadata.annotations and not found.metadata.deletion_timestamp:
        meta.setdefault("annotations", {})[PRE_TERMINATE_KCP_CLEANUP] = ""
    if meta:
        patch["metadata"] = meta
    spec: Json = {}
    if wire(found.spec.readiness_gates) != readiness_gates(kcp):
        spec["readinessGates"] = readiness_gates(kcp)
    if wire(found.spec.taints) != wire(kcp.spec.machine_template.spec.taints):
        spec["taints"] = wire(kcp.spec.machine_template.spec.taints) or None
    timeouts = _timeouts_patch(kcp, found)
    if timeouts:
        spec["deletion"] = timeouts
    if spec:
        patch["spec"] = spec
    return patch


def _timeouts_patch(kcp: KubeadmControlPlane, found: Machine) -> Json:
    wanted, have = kcp.spec.machine_template.spec.deletion, found.spec.deletion
    patch: Json = {}
    for field, wire_name in (
        ("node_drain_timeout_seconds", "nodeDrainTimeoutSeconds"),
        ("node_volume_detach_timeout_seconds", "nodeVolumeDetachTimeoutSeconds"),
    ):
        if getattr(wanted, field) != getattr(have, field):
            patch[wire_name] = getattr(wanted, field)
    # Admission gives every Machine a limit for this one: unset means that default.
    if wanted.node_deletion_timeout_seconds not in (None, have.node_deletion_timeout_seconds):
        patch["nodeDeletionTimeoutSeconds"] = wanted.node_deletion_timeout_seconds
    return patch


def metadata_patch(
    kcp: KubeadmControlPlane, cluster: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> Json:
    """The same labels and annotations for what belongs to a Machine."""
    meta = _metadata_patch(labels or {}, annotations or {}, kcp, cluster)
    return {"metadata": meta} if meta else {}


def _metadata_patch(
    labels: Mapping[str, str], annotations: Mapping[str, str], kcp: KubeadmControlPlane, cluster: str
) -> Json:
    meta: Json = {}
    for field, have, wanted in (
        ("labels", labels, machine_labels(kcp, cluster)),
        ("annotations", annotations, machine_annotations(kcp)),
    ):
        missing = {key: value for key, value in wanted.items() if have.get(key) != value}
        if missing:
            meta[field] = missing
    return meta
