"""How a machine becomes a Node: the specs of kubeadm for it, and what its operating system needs first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.capi.version import parse

Json = dict[str, Any]

# Operating systems whose machines join by kubeadm, and how packages get onto them.
PACKAGED = ("rocky",)
_PACKAGES = "https://pkgs.k8s.io/core:/stable:"
_RUNTIME_PACKAGES = "https://download.docker.com/linux/centos"
_USER = {"rocky": "rocky"}


def render_join(
    version: str,
    os: str,
    *,
    labels: Mapping[str, str],
    taints: Sequence[Json],
    ssh_keys: Sequence[str],
    time_servers: Sequence[str],
) -> Json:
    """The spec of a KubeadmConfigTemplate for workers."""
    arguments = [{"name": "cloud-provider", "value": "external"}]
    if labels:
        value = ",".join(f"{key}={labels[key]}" for key in sorted(labels))
        arguments.append({"name": "node-labels", "value": value})
    registration: Json = {"kubeletExtraArgs": arguments}
    if taints:
        registration["taints"] = [dict(each) for each in taints]
    return {**host(version, os, ssh_keys, time_servers), "joinConfiguration": {"nodeRegistration": registration}}


def render_control_plane(
    version: str, os: str, *, kube_proxy: bool, ssh_keys: Sequence[str], time_servers: Sequence[str]
) -> Json:
    """The kubeadmConfigSpec of a control plane on machines."""
    registration = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}}
    skipped: Json = {} if kube_proxy else {"skipPhases": ["addon/kube-proxy"]}
    return {
        **host(version, os, ssh_keys, time_servers),
        "clusterConfiguration": {"controllerManager": {"extraArgs": [{"name": "cloud-provider", "value": "external"}]}},
        "initConfiguration": {**registration, **skipped},
        "joinConfiguration": registration,
    }


def host(version: str, os: str, ssh_keys: Sequence[str], time_servers: Sequence[str]) -> Json:
    """Users, clock, and the programs of Kubernetes where the image has none."""
    spec: Json = {}
    if os in PACKAGED:
        spec["files"] = _files(version)
        spec["preKubeadmCommands"] = _commands(version)
    if ssh_keys:
        user = {"name": _USER.get(os, "core"), "sudo": "ALL=(ALL) NOPASSWD:ALL", "sshAuthorizedKeys": list(ssh_keys)}
        spec["users"] = [user]
    if time_servers:
        spec["ntp"] = {"enabled": True, "servers": list(time_servers)}
    return spec


def _files(version: str) -> list[Json]:
    found = parse(version)
    minor = f"v{found.major}.{found.minor}"
    kubernetes = f"""\
[kubernetes]
name=Kubernetes
baseurl={_PACKAGES}/{minor}/rpm/
enabled=1
gpgcheck=1
gpgkey={_PACKAGES}/{minor}/rpm/repodata/repomd.xml.key
"""
    runtime = f"""\
[containerd]
name=containerd
baseurl={_RUNTIME_PACKAGES}/$releasever/$basearch/stable
enabled=1
gpgcheck=1
gpgkey={_RUNTIME_PACKAGES}/gpg
"""
    modules = "overlay\nbr_netfilter\n"
    forwarding = "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n"
    return [
        {"path": "/etc/yum.repos.d/kubernetes.repo", "content": kubernetes},
        {"path": "/etc/yum.repos.d/containerd.repo", "content": runtime},
        {"path": "/etc/modules-load.d/kubernetes.conf", "content": modules},
        {"path": "/etc/sysctl.d/99-kubernetes.conf", "content": forwarding},
    ]


def _commands(version: str) -> list[str]:
    """An image that has kubeadm already is left as it is."""
    release = version.removeprefix("v")
    wanted = " ".join(f"{each}-{release}" for each in ("kubelet", "kubeadm", "kubectl"))
    install = f"dnf install -y containerd.io iscsi-initiator-utils nfs-utils {wanted}"
    default = (
        "containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' > /etc/containerd/config.toml"
    )
    return [
        "swapoff -a",
        "modprobe overlay",
        "modprobe br_netfilter",
        "sysctl --system",
        "setenforce 0 || true",
        "systemctl disable --now firewalld || true",
        f"command -v kubeadm || {install}",
        f"test -s /etc/containerd/config.toml || {default}",
        "systemctl enable --now containerd",
        "systemctl enable --now kubelet",
    ]
