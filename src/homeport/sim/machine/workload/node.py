"""Nodes as kubelets register them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from homeport.machinery.quantity import parse_quantity
from homeport.runtime.clock import rfc3339
from homeport.sim.machine.workload.kind import Json

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
NO_NETWORK = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)

_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
# Labels of Kubernetes that a kubelet may give its own node; all others of these domains it refuses to start with.
_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "kubernetes.io/instance-type",
        "beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    }
)  # fmt: skip
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-restriction.kubernetes.io")
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)")


class KubeletProblem(ValueError):
    """The kubelet does not start, in its words."""


@dataclass(slots=True)
class Registration:
    """What a kubelet knows when it registers its node."""

    name: str
    addresses: tuple[str, ...]
    version: str  # v1.30.2
    os_image: str
    machine_id: str
    cpus: int
    memory_bytes: int
    arguments: Mapping[str, str] = field(default_factory=dict)  # of the kubelet
    taints: list[Json] | None = None
    control_plane: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


def build_node(found: Registration, now: float) -> Json:
    """The Node object, status included. Raises KubeletProblem for arguments that a kubelet refuses."""
    arguments = found.arguments
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": found.name,
        "kubernetes.io/os": "linux",
        **_labels(arguments.get("node-labels", "")),
        **found.labels,
    }
    taints = list(found.taints or []) + parse_taints(arguments.get("register-with-taints", ""))
    if found.control_plane:
        labels |= {CONTROL_PLANE: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
        if found.taints is None:
            taints.append({"key": CONTROL_PLANE, "effect": "NoSchedule"})
    if arguments.get("cloud-provider") == "external":
        taints.append({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"})
    spec: Json = {"taints": taints} if taints else {}
    if arguments.get("provider-id"):
        spec["providerID"] = arguments["provider-id"]
    annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true", **found.annotations}
    return {
        "metadata": {"name": found.name, "labels": labels, "annotations": annotations},
        "spec": spec,
        "status": _status(found, now),
    }


def _status(found: Registration, now: float) -> Json:
    wanted = found.arguments.get("node-ip", "")
    internal = [wanted] if wanted and wanted not in ("0.0.0.0", "::") else list(found.addresses)  # noqa: S104
    amounts = {
        "cpu": str(found.cpus),
        "memory": f"{found.memory_bytes // 1024}Ki",
        "pods": found.arguments.get("max-pods", "110"),
        "ephemeral-storage": "41152736Ki",
    }
    parse_quantity(amounts["pods"])
    return {
        "addresses": node_addresses(internal, found.name),
        "capacity": amounts,
        "allocatable": dict(amounts),
        "conditions": conditions(True, now),
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": found.machine_id,
            "containerRuntimeVersion": "containerd://1.7.27",
            "kernelVersion": "6.8.0-60-generic",
            "kubeProxyVersion": "",
            "kubeletVersion": found.version,
            "machineID": found.machine_id.replace("-", ""),
            "operatingSystem": "linux",
            "osImage": found.os_image,
            "systemUUID": found.machine_id,
        },
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
    }


def node_addresses(internal: Sequence[str], name: str) -> list[Json]:
    return [*({"type": "InternalIP", "address": each} for each in internal), {"type": "Hostname", "address": name}]


def conditions(ready: bool, now: float, message: str = "") -> list[Json]:
    at = rfc3339(now)
    found = [_condition(kind, "False", reason, text, at) for kind, reason, text in _PRESSURES]
    if ready:
        return [*found, _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", at)]
    return [*found, _condition("Ready", "False", "KubeletNotReady", message, at)]


def not_ready_taints(now: float) -> list[Json]:
    return [
        {"key": NOT_READY, "effect": "NoSchedule"},
        {"key": NOT_READY, "effect": "NoExecute", "timeAdded": rfc3339(now)},
    ]


def lost_conditions(now: float) -> list[Json]:
    """What the node controller writes about a kubelet that stopped posting."""
    at, text = rfc3339(now), "Kubelet stopped posting node status."
    kinds = [*(kind for kind, _, _ in _PRESSURES), "Ready"]
    return [_condition(kind, "Unknown", "NodeStatusUnknown", text, at) for kind in kinds]


def _condition(kind: str, status: str, reason: str, message: str, at: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }


def _labels(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        found[key.strip()] = value.strip()
    refused = sorted(key for key in found if not _may_set(key))
    if refused:
        raise KubeletProblem(
            f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{' '.join(refused)}]"
        )
    return found


def _may_set(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if not (domain == "kubernetes.io" or domain.endswith((".kubernetes.io", "k8s.io"))):
        return True
    if key in _OWN_LABELS:
        return True
    return any(domain == own or domain.endswith(f".{own}") for own in _OWN_DOMAINS)


def parse_taints(text: str) -> list[Json]:
    found: list[Json] = []
    for each in filter(None, text.split(",")):
        match = _TAINT.fullmatch(each.strip())
        if match is None:
            raise KubeletProblem(f'invalid argument "{each}" for "--register-with-taints" flag: invalid taint spec')
        key, value, effect = match.groups()
        found.append({"key": key, "effect": effect, **({"value": value} if value else {})})
    return found
