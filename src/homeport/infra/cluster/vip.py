"""The control plane's virtual address where the infrastructure has no load balancer: kube-vip as a static Pod.

Added to the user data of control planes whose author has not thought of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.machinery import yaml
from homeport.machinery.address import is_address

# On a Cluster, "false": its control plane's address is announced by something else.
WANTED = "infra.homeport.dev/kube-vip"
_KUBEADM = "KubeadmConfig"
IMAGE = "ghcr.io/kube-vip/kube-vip:v0.9.2"
MANIFEST = "/etc/kubernetes/manifests/kube-vip.yaml"
_ADMIN = "/etc/kubernetes/admin.conf"
# From 1.29 on admin.conf may do nothing until kubeadm init has bound its group, which needs the address to answer.
_SUPER_ADMIN = "/etc/kubernetes/super-admin.conf"
_WRITE_FILES = re.compile(r"^write_files:[ \t]*\n(?P<indent>[ \t]*)-", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class VirtualAddress:
    host: str
    port: int
    interface: str
    image: str = IMAGE


def with_vip(user_data: bytes, machine: Machine, cluster: Cluster, interface: str) -> bytes:
    """The user data of a control plane machine, with kube-vip where its cluster wants it and kubelet would run it.

    kubeadm's control planes run static Pods from files; Talos and k0s bring their own ways to hold an address.
    """
    endpoint, ref = cluster.spec.control_plane_endpoint, machine.spec.bootstrap.config_ref
    unwanted = cluster.metadata.annotations.get(WANTED, "").lower() == "false"
    kubeadm = ref.kind == _KUBEADM if ref is not None else b"kubeadm" in user_data
    if unwanted or not kubeadm:
        return user_data
    address = VirtualAddress(endpoint.host, endpoint.port or 6443, interface)
    return with_virtual_address(user_data, address, machine.spec.version)


def with_virtual_address(user_data: bytes, address: VirtualAddress, version: str) -> bytes:
    """Cloud-config with the manifest added; other formats, and data that brings a VIP of its own, stay as they are."""
    text = user_data.decode("utf-8", errors="replace")
    if "#cloud-config" not in text[:200] or "kube-vip" in text or not is_address(address.host):
        return user_data
    initial = "kubeadm init" in text
    manifest = render_manifest(address, super_admin=initial and _minor(version) >= 29)
    return _with_file(text, MANIFEST, manifest).encode()


def _settings(address: VirtualAddress) -> Mapping[str, str]:
    host = ip_address(address.host)
    return {
        "vip_arp": "true",
        "port": str(address.port),
        "vip_interface": address.interface,
        "vip_subnet": "32" if host.version == 4 else "128",
        "cp_enable": "true",
        "cp_namespace": "kube-system",
        "vip_leaderelection": "true",
        "vip_leasename": "plndr-cp-lock",
        # kube-vip's own fast settings: while no node holds the address, the cluster is unreachable.
        "vip_leaseduration": "5",
        "vip_renewdeadline": "3",
        "vip_retryperiod": "1",
        "address": str(host),
    }


def render_manifest(address: VirtualAddress, *, super_admin: bool) -> str:
    container: dict[str, Any] = {
        "name": "kube-vip",
        "image": address.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["manager"],
        "env": [{"name": name, "value": value} for name, value in _settings(address).items()],
        "securityContext": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]}},
        "volumeMounts": [{"mountPath": _ADMIN, "name": "kubeconfig"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-vip", "namespace": "kube-system"},
        "spec": {
            "hostNetwork": True,
            "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["kubernetes"]}],
            "containers": [container],
            "volumes": [
                {
                    "name": "kubeconfig",
                    "hostPath": {"path": _SUPER_ADMIN if super_admin else _ADMIN, "type": "FileOrCreate"},
                }
            ],
        },
    }
    return yaml.dump(pod)


def _with_file(text: str, path: str, content: str) -> str:
    """Inserts text: parsing and rewriting a template would change its expressions."""
    found = _WRITE_FILES.search(text)
    indent = found.group("indent") if found else ""
    body = "\n".join(f"{indent}    {line}" for line in content.splitlines())
    head = [f"- path: {path}", "  owner: root:root", "  permissions: '0600'", "  content: |"]
    entry = "".join(f"{indent}{line}\n" for line in head) + body + "\n"
    if found:
        start = found.start("indent")
        return text[:start] + entry + text[start:]
    return f"{text.rstrip(chr(10))}\nwrite_files:\n{entry}"


def _minor(version: str) -> int:
    found = re.match(r"v?\d+\.(\d+)", version)
    return int(found.group(1)) if found else 0
