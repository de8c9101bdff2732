"""The virtual address of a Talos control plane: kube-vip as a DaemonSet, or Talos' own shared address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from homeport.machinery import yaml

Json = dict[str, Any]

VERSION: Final = "v0.9.2"
_IMAGE: Final = "ghcr.io/kube-vip/kube-vip"
KUBE_PRISM_PORT: Final = 7445
# The network interface of a virtual machine, by the hypervisor's devices.
_INTERFACES: Final = {"nutanix": "ens3", "harvester": "enp1s0", "proxmox": "eth0", "gcp": "ens4"}
_NAME: Final = "kube-vip"


@dataclass(frozen=True, slots=True)
class VirtualAddress:
    address: str
    interface: str
    holder: Literal["kube-vip", "talos"] = "kube-vip"
    version: str = VERSION  # of kube-vip


def default_interface(provider: str) -> str:
    return _INTERFACES.get(provider, "eth0")


def kube_vip_manifest(address: VirtualAddress, port: int) -> str:
    """Talos applies it as soon as its API server answers; it runs before there is a CNI."""
    return "---\n".join(yaml.dump(each) for each in (_account(), _role(), _binding(), _daemon_set(address, port)))


def _account() -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _NAME, "namespace": "kube-system"}}


def _role() -> Json:
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update", "patch"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:kube-vip"},
        "rules": rules,
    }


def _binding() -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:kube-vip"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kube-vip"},
        "subjects": [{"kind": "ServiceAccount", "name": _NAME, "namespace": "kube-system"}],
    }


def _daemon_set(address: VirtualAddress, port: int) -> Json:
    labels = {"app.kubernetes.io/name": "kube-vip"}
    pod = {
        "serviceAccountName": _NAME,
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(address, port)],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": _NAME, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _container(address: VirtualAddress, port: int) -> Json:
    settings = {
        "vip_arp": "true",
        "vip_interface": address.interface,
        "address": address.address,
        "port": str(port),
        "cp_enable": "true",
        "cp_namespace": "kube-system",
        "svc_enable": "false",
        "vip_leaderelection": "true",
        "vip_leaseduration": "5",
        "vip_renewdeadline": "3",
        "vip_retryperiod": "1",
        # Services do not work before there is a CNI: the API is reached through KubePrism on the same machine.
        "KUBERNETES_SERVICE_HOST": "localhost",
        "KUBERNETES_SERVICE_PORT": str(KUBE_PRISM_PORT),
    }
    return {
        "name": _NAME,
        "image": f"{_IMAGE}:{address.version}",
        "args": ["manager"],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}},
    }
