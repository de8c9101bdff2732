"""What runs the controllers on a Kubernetes cluster: a Deployment, and what keeps it reachable and available."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport import __version__
from homeport.app.kubernetes import webhook
from homeport.app.kubernetes.layout import Placement
from homeport.ccm.manifest import IMAGE

Json = dict[str, Any]

INSTALLED = "homeport.dev/installed"  # on everything that an upgrade may remove again
VERSION_LABEL = "app.kubernetes.io/version"  # of Homeport, on the Pods
LABELS: Mapping[str, str] = {
    "app.kubernetes.io/name": "homeport",
    "app.kubernetes.io/managed-by": "homeport-install",
    INSTALLED: "true",
}
HEALTH_PORT = 8081
_USER = 65532  # that of images without a root user
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_STOP_SECONDS = 30
# The only folder of a container that can be written.
HOME: Mapping[str, str] = {"name": "HOME", "value": "/tmp"}  # noqa: S108
TMP_MOUNT: Mapping[str, str] = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108
CONFINED: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


_HOST = r"[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?/"
_PATH = r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
_REFERENCE = re.compile(rf"({_HOST})?{_PATH}(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?")


class ImageError(ValueError):
    """Not the name of an image; the text says what is expected."""


def check_image(text: str) -> str:
    """With a tag, a digest or both. Raises ImageError: a kubelet would say so much later."""
    if not _REFERENCE.fullmatch(text):
        raise ImageError(
            f"{text!r} is not a valid image: expected REPOSITORY:TAG or REPOSITORY@sha256:DIGEST (64 characters 0-9, "
            f"a-f), for example {IMAGE}"
        )
    return text


@dataclass(frozen=True, slots=True)
class PodOptions:
    """What a user chooses about the Pods."""

    image: str = IMAGE
    replicas: int = 2
    ccm_image: str = ""  # '': the same image
    arguments: tuple[str, ...] = ()  # more options of `homeport up`


def render(placement: Placement, options: PodOptions) -> list[Json]:
    ports = [{"name": "health", "port": HEALTH_PORT, "targetPort": "health", "protocol": "TCP"}]
    labels = webhook.pod_labels() if placement.home else {}
    pod = render_pod(placement, _container(placement, options))
    return [
        render_deployment(placement, options.replicas, pod, labels),
        render_object("v1", "Service", placement, spec={"selector": selector(placement), "ports": ports}),
        render_budget(placement),
        render_object("networking.k8s.io/v1", "NetworkPolicy", placement, spec=_network(placement)),
    ]


def render_budget(placement: Placement) -> Json:
    spec = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector(placement)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return render_object("policy/v1", "PodDisruptionBudget", placement, spec=spec)


def selector(placement: Placement) -> dict[str, str]:
    return {"control-plane": placement.name}


def render_object(api_version: str, kind: str, placement: Placement, **more: Any) -> Json:
    meta = {"name": placement.name, "namespace": placement.namespace, "labels": dict(LABELS)}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


def arguments(placement: Placement, options: PodOptions) -> list[str]:
    chosen = ["up", "--kubernetes", f"--health=*:{HEALTH_PORT}"]
    chosen += [f"--webhook-listen=*:{webhook.PORT}"] if placement.home else []
    return [*chosen, *([f"--deployment={placement}"] if placement.split else []), *options.arguments]


def _ports(placement: Placement) -> list[Json]:
    return render_ports({"health": HEALTH_PORT} | ({webhook.PORT_NAME: webhook.PORT} if placement.home else {}))


def render_ports(named: Mapping[str, int]) -> list[Json]:
    return [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in named.items()]


def _network(placement: Placement) -> Json:
    """Probes, metrics and reviews come in; hypervisors and workload clusters are anywhere, so nothing limits what goes
    out."""
    ports = [{"port": each["name"], "protocol": "TCP"} for each in _ports(placement)]
    return {
        "podSelector": {"matchLabels": selector(placement)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": ports}],
    }


def render_deployment(
    placement: Placement, replicas: int, pod: Json, more_labels: Mapping[str, str] | None = None
) -> Json:
    labels = {**selector(placement), "app.kubernetes.io/name": "homeport", VERSION_LABEL: __version__}
    shown = {"kubectl.kubernetes.io/default-container": pod["containers"][0]["name"]}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": selector(placement)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": {**labels, **(more_labels or {})}, "annotations": shown}, "spec": pod},
    }
    return render_object("apps/v1", "Deployment", placement, spec=spec)


def render_pod(placement: Placement, container: Json, volumes: Sequence[Json] = (), *, token: bool = True) -> Json:
    return {
        "serviceAccountName": placement.name,
        "automountServiceAccountToken": token,
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
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}, *volumes],
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
            dict(HOME),
        ],
        "ports": _ports(placement),
        **probes(webhook.READINESS if placement.home else {}),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        "securityContext": dict(CONFINED),
        "volumeMounts": [dict(TMP_MOUNT)],
    }


def probes(readiness: Mapping[str, Any] | None = None) -> Json:
    """A replica that serves webhooks is ready when it answers reviews: see READINESS."""
    # The first answer comes when Python has started; caches of a large cluster take longer, and /readyz says so.
    return {
        "startupProbe": _probe("/healthz", period=2, failures=60),
        "livenessProbe": _probe("/healthz", period=10, failures=3),
        "readinessProbe": {**_probe("/readyz", period=5, failures=3), **(readiness or {})},
    }


def _probe(path: str, *, period: int, failures: int) -> Json:
    get = {"path": path, "port": "health"}
    return {"httpGet": get, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}
