"""The agent of konnectivity: it dials the control plane, which then reaches Pods and kubelets through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.hosted.content.inputs import (
    DAEMON_SET,
    DEPLOYMENT,
    SERVICE_ACCOUNT,
    SYSTEM,
    ContentInputs,
    Item,
    binding,
    item,
    user,
)

ADDON = "konnectivity"
AGENT = "konnectivity-agent"
SERVER_USER = "system:konnectivity-server"
_LABELS = {"k8s-app": AGENT}
_HEALTH_PORT = 8134


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInputs:
    image: str
    host: str
    port: int
    mode: str = "DaemonSet"
    replicas: int | None = None
    host_network: bool = False
    tolerations: Sequence[dict[str, Any]] = ()
    extra_args: Sequence[str] = ()


def render_agent(inputs: ContentInputs, agent: AgentInputs) -> Iterator[Item]:
    yield item(SERVICE_ACCOUNT, AGENT, SYSTEM, addon=ADDON)
    yield binding(SERVER_USER, "system:auth-delegator", user(SERVER_USER), addon=ADDON)
    kind = DAEMON_SET if agent.mode == "DaemonSet" else DEPLOYMENT
    spec: dict[str, Any] = {
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": _pod(agent)},
    }
    if kind is DEPLOYMENT:
        spec["replicas"] = agent.replicas or 2
    yield item(kind, AGENT, SYSTEM, addon=ADDON, labels=_LABELS, spec=spec)


def _pod(agent: AgentInputs) -> dict[str, Any]:
    token = "/var/run/secrets/tokens"  # noqa: S105 a folder
    args = {
        "--ca-cert": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
        "--health-server-port": str(_HEALTH_PORT),
        "--logtostderr": "true",
        "--proxy-server-host": agent.host,
        "--proxy-server-port": str(agent.port),
        "--service-account-token-path": f"{token}/{AGENT}-token",
    }
    replaced = {each.partition("=")[0] for each in agent.extra_args}
    container = {
        "name": AGENT,
        "image": agent.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/proxy-agent"],
        "args": [*(f"{k}={v}" for k, v in sorted(args.items()) if k not in replaced), *agent.extra_args],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": _HEALTH_PORT, "scheme": "HTTP"},
            "initialDelaySeconds": 15,
            "timeoutSeconds": 15,
        },
        "volumeMounts": [{"name": f"{AGENT}-token", "mountPath": token}],
    }
    projected = {"serviceAccountToken": {"path": f"{AGENT}-token", "audience": SERVER_USER, "expirationSeconds": 3600}}
    pod: dict[str, Any] = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": AGENT,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": list(agent.tolerations),
        "containers": [container],
        "volumes": [{"name": f"{AGENT}-token", "projected": {"sources": [projected]}}],
    }
    return {**pod, "hostNetwork": True} if agent.host_network else pod
