"""Flannel, the network that Talos installs unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.api.meta import Resource
from homeport.sim.machine.workload.kind import DAEMON_SET, SERVICE_ACCOUNT, Json

_NAME = "kube-flannel"
_SYSTEM = "kube-system"


def flannel() -> Iterator[tuple[Json, Resource]]:
    yield {"metadata": {"name": "flannel", "namespace": _SYSTEM}}, SERVICE_ACCOUNT
    labels = {"k8s-app": "flannel"}
    container = {
        "name": _NAME,
        "image": "ghcr.io/siderolabs/flannel:v0.26.5",
        "volumeMounts": [{"name": "cni", "mountPath": "/etc/cni/net.d"}],
        # Through KubePrism: Services may not work yet.
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": "localhost"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": "7445"},
        ],
    }
    pod = {
        "hostNetwork": True,
        "serviceAccountName": "flannel",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    yield {"metadata": {"name": _NAME, "namespace": _SYSTEM, "labels": labels}, "spec": spec}, DAEMON_SET
