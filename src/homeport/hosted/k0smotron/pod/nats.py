"""NATS inside the control plane Pods, as storage without any other Pod. Pure."""

from __future__ import annotations

import base64
from typing import Any

from homeport.hosted.k0smotron.pod.entrypoint import NATS_DIR
from homeport.hosted.k0smotron.pod.subject import Subject

Json = dict[str, Any]

CLAIM = "nats-data"
TOKEN_KEY = "token"  # noqa: S105


def render_nats_service(subject: Subject) -> Json:
    spec = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "selector": subject.pod_selector,
        "publishNotReadyAddresses": True,
        "ports": [{"name": "cluster", "port": 6222, "targetPort": 6222, "protocol": "TCP"}],
    }
    metadata = subject.metadata(subject.names.nats, "control-plane")
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def render_nats_token(subject: Subject, token: str) -> Json:
    data = {TOKEN_KEY: base64.b64encode(token.encode()).decode()}
    metadata = subject.metadata(subject.names.nats_token, "control-plane")
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def add_nats(subject: Subject, statefulset: Json) -> None:
    """The volume, the port and the settings of each Pod's member."""
    spec, persistence = statefulset["spec"], subject.spec.storage.nats.persistence
    spec["serviceName"] = subject.names.nats
    spec["podManagementPolicy"] = "Parallel"  # a member is ready when it has found the others
    claim: Json = {
        "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": str(persistence.size)}}},
    }
    if persistence.storage_class:
        claim["spec"]["storageClassName"] = persistence.storage_class
    spec.setdefault("volumeClaimTemplates", []).append(claim)
    container = spec["template"]["spec"]["containers"][0]
    container["volumeMounts"].append({"name": CLAIM, "mountPath": NATS_DIR})
    container["ports"].append({"name": "nats-cluster", "containerPort": 6222, "protocol": "TCP"})
    secret = {"name": subject.names.nats_token, "key": TOKEN_KEY}
    container["env"] = [
        {"name": "K0SMOTRON_NATS_TOKEN", "valueFrom": {"secretKeyRef": secret}},
        {"name": "K0SMOTRON_NATS_NAME", "value": subject.names.statefulset},
        {"name": "K0SMOTRON_NATS_SERVICE", "value": subject.names.nats},
        {"name": "K0SMOTRON_NATS_REPLICAS", "value": str(subject.spec.replicas)},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
    ]
