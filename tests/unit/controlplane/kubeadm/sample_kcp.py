"""Objects of a small control plane."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.controlplane.kubeadm import desired

INFRA = {"apiGroup": "infrastructure.example.com", "kind": "GenericMachine", "name": "cp-0"}
BOOT = {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "cp-0"}


def raw_kcp(**spec: Any) -> dict[str, Any]:
    template = {"infrastructureRef": {**INFRA, "kind": "GenericMachineTemplate", "name": "small"}}
    return {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "one-cp", "namespace": "default", "uid": "kcp-uid", "generation": 3},
        "spec": {
            "replicas": 3,
            "version": "v1.30.2",
            "machineTemplate": {"spec": template},
            "kubeadmConfigSpec": {},
            **spec,
        },
    }


def make_kcp(**spec: Any) -> KubeadmControlPlane:
    return msgspec.convert(raw_kcp(**spec), KubeadmControlPlane)


def make_machine(kcp: KubeadmControlPlane, name: str = "cp-0", **meta: Any) -> Machine:
    body = desired.machine(kcp, "one", name, bootstrap={**BOOT, "name": name}, infrastructure={**INFRA, "name": name})
    body["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "uid": f"uid-{name}", "generation": 1, **meta}
    return msgspec.convert(body, Machine)


def make_config(kcp: KubeadmControlPlane, *, join: bool, name: str = "cp-0") -> KubeadmConfig:
    return msgspec.convert(desired.kubeadm_config(kcp, "one", name, join=join), KubeadmConfig)
