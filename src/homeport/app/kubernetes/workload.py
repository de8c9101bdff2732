"""What runs the controllers on a Kubernetes cluster: a Deployment, and what keeps it reachable and available."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport import __version__
from homeport.app.kubernetes.layout import Placement
from homeport.ccm.manifest import IMAGE

Json = dict[str, Any]

INSTALLED = "homeport.dev/installed"  # on everything that an upgrade may remove again
LABELS: Mapping[str, str] = {
    "app.kubernetes.io/name": "homeport",
    "app.kubernetes.io/managed-by": "homeport-install",
    INSTALLED: "true",
}
HEALTH_PORT = 8081
_USER = 65532  # that of images without a root user
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_STOP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What a user chooses about the Pods."""

    image: str = IMAGE
    replicas: int = 2
    ccm_image: str = ""  # '': the same image
    arguments: tuple[str, ...] = ()  # more options of `homeport up`


def render(placement: Placement, options: PodOptions) -> list[Json]:
    ports = [{"name": "health", "port": HEALTH_PORT, "targetPort": "health", "protocol": "TCP"}]
    return [
        render_object("apps/v1", "Deployment", placement, spec=_deployment(placement, options)),
        render_object("v1", "Service", placement, spec={"selector": selector(placement), "ports": ports}),
        render_object(
            "policy/v1",
            "PodDisruptionBudget",
            placement,
            spec={
                "maxUnavailable": 1,
                "selector": {"matchLabels": selector(placement)},
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        ),
        render_object("networking.k8s.io/v1", "NetworkPolicy", placement, spec=_network(placement)),
    ]


def selector(placement: Placement) -> dict[str, str]:
    return {"control-plane": placement.name}


def render_object(api_version: str, kind: str, placement: Placement, **more: Any) -> Json:
    meta = {"name": placement.name, "namespace": placement.namespace, "labels": dict(LABELS)}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


def arguments(placement: Placement, options: PodOptions) -> list[str]:
    chosen = ["up", "--kubernetes", f"--health=*:{HEALTH_PORT}"]
    return [*chosen, *([f"--deployment={placement}"] if placement.split else []), *options.arguments]


def _network(placement: Placement) -> Json:
    """Probes and metrics come in; hypervisors and workload clusters are anywhere, so nothing limits what goes out."""
    ports = [{"port": name, "protocol": "TCP"} for name in ("health",)]
    return {
        "podSelector": {"matchLabels": selector(placement)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": ports}],
    }


def _deployment(placement: Placement, options: PodOptions) -> Json:
    labels = {**selector(placement), "app.kubernetes.io/name": "homeport", "app.kubernetes.io/version": __version__}
    return {
        "replicas": options.replicas,
        "selector": {"matchLabels": selector(placement)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": labels, "annotations": {"kubectl.kubernetes.io/default-container": "manager"}},
            "spec": _pod(placement, options),
        },
    }


def _pod(placement: Placement, options: PodOptions) -> Json:
    return {
        "serviceAccountName": placement.name,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": _STOP_SECONDS,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {"podAntiAffinity": _apart(placement)},
        "tolerations": [{"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(placement, options)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}],
    }


def _apart(placement: Placement) -> Json:
    """Preferred, so that a cluster with one Node works, too."""
    topologies = (("kubernetes.io/hostname", 100), ("topology.kubernetes.io/zone", 50))
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": weight,
                "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": selector(placement)}},
            }
            for key, weight in topologies
        ]
    }


def _container(placement: Placement, options: PodOptions) -> Json:
    return {
        "name": "manager",
        "image": options.image,
        "args": arguments(placement, options),
        "env": [
            {"name": "HOMEPORT_CCM_IMAGE", "value": options.ccm_image or options.image},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108  (the only folder of the container that can be written)
        ],
        "ports": [{"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"}],
        # The first answer comes when Python has started; caches of a large cluster take longer, and /readyz says so.
        "startupProbe": _probe("/healthz", period=2, failures=60),
        "livenessProbe": _probe("/healthz", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }


def _probe(path: str, *, period: int, failures: int) -> Json:
    get = {"path": path, "port": "health"}
    return {"httpGet": get, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
