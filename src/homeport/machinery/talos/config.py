"""Machine configuration, v1alpha1: what a machine with Talos becomes.

The values are those that `talosctl gen config` chooses, but for discovery, which is off: its service is on the
internet, and all addresses are known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from homeport.machinery import yaml
from homeport.machinery.patch import PatchError, json_patch
from homeport.machinery.talos.bundle import Bundle
from homeport.machinery.talos.certificate import KeyPair, encoded
from homeport.machinery.talos.vip import KUBE_PRISM_PORT, VirtualAddress, kube_vip_manifest

Json = dict[str, Any]
Role = Literal["controlplane", "worker"]

API_PORT: Final = 6443
_NO_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"


class ConfigError(ValueError):
    """A machine configuration that can't be made from what was given: names the field."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One operation of a JSON patch. `value` is YAML, so that `"true"` and `"[1, 2]"` mean what they look like."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """What all machines of a cluster have in common. `endpoint` is the host by which they reach the API."""

    name: str
    endpoint: str
    kubernetes: str  # v1.32.4
    installer: str
    port: int = API_PORT
    install_disk: str = "/dev/vda"
    pod_subnets: tuple[str, ...] = ("10.244.0.0/16",)
    service_subnets: tuple[str, ...] = ("10.96.0.0/12",)
    cert_sans: tuple[str, ...] = ()  # besides the endpoint: addresses of control planes, the virtual address
    vip: VirtualAddress | None = None
    cni: Literal["none", "flannel"] = "none"  # none: something else installs one
    kube_proxy: bool = False  # Cilium replaces it
    pods_on_control_planes: bool = False
    time_servers: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineShape:
    hostname: str
    labels: Mapping[str, str]


def render_config(role: Role, cluster: ClusterShape, machine: MachineShape, bundle: Bundle) -> str:
    """The YAML that Talos reads. Raises ConfigError for a patch that does not apply."""
    made = _control_plane(cluster, machine, bundle) if role == "controlplane" else _worker(cluster, machine, bundle)
    return yaml.dump(_patched(made, cluster.patches))


def _patched(document: Json, patches: Sequence[Patch]) -> Json:
    for number, patch in enumerate(patches):
        where = f"talos.configPatches[{number}]"
        operation: Json = {"op": patch.op, "path": patch.path}
        try:
            if patch.op != "remove":
                operation["value"] = yaml.load(patch.value)
            document = json_patch(document, [operation])
        except (yaml.YamlError, PatchError) as broken:
            raise ConfigError(f"{where} ({patch.op} {patch.path}) can't be applied: {broken}") from broken
    return document


def _control_plane(cluster: ClusterShape, machine: MachineShape, bundle: Bundle) -> Json:
    settings = _machine("controlplane", cluster, machine, bundle)
    settings["ca"] = bundle.os.document()
    if not cluster.pods_on_control_planes:
        # Where Pods run on control planes, load balancers must find them there.
        settings["nodeLabels"] = {_NO_BALANCER: "", **settings.get("nodeLabels", {})}
    if cluster.vip is not None and cluster.vip.holder == "talos":
        shared = {"interface": cluster.vip.interface, "dhcp": True, "vip": {"ip": cluster.vip.address}}
        settings["network"]["interfaces"] = [shared]
    return {**_head(), "machine": settings, "cluster": _control_plane_cluster(cluster, bundle)}


def _control_plane_cluster(cluster: ClusterShape, bundle: Bundle) -> Json:
    version = cluster.kubernetes
    made = {
        **_cluster(cluster, bundle),
        "ca": bundle.kubernetes.document(),
        "aggregatorCA": bundle.aggregator.document(),
        "serviceAccount": {"key": encoded(bundle.service_account)},
        "secretboxEncryptionSecret": bundle.secretbox_key,
        "etcd": {"ca": bundle.etcd.document()},
        "apiServer": {
            "image": f"registry.k8s.io/kube-apiserver:{version}",
            "certSANs": _sans(cluster),
            "disablePodSecurityPolicy": True,
            "admissionControl": [{"name": "PodSecurity", "configuration": _pod_security()}],
            "auditPolicy": _audit_policy(),
        },
        "controllerManager": {"image": f"registry.k8s.io/kube-controller-manager:{version}"},
        "scheduler": {"image": f"registry.k8s.io/kube-scheduler:{version}"},
        "proxy": {"image": f"registry.k8s.io/kube-proxy:{version}"} if cluster.kube_proxy else {"disabled": True},
    }
    if cluster.pods_on_control_planes:
        made["allowSchedulingOnControlPlanes"] = True
    if cluster.vip is not None and cluster.vip.holder == "kube-vip":
        made["inlineManifests"] = [{"name": "kube-vip", "contents": kube_vip_manifest(cluster.vip, cluster.port)}]
    return made


def _worker(cluster: ClusterShape, machine: MachineShape, bundle: Bundle) -> Json:
    settings = _machine("worker", cluster, machine, bundle)
    settings["ca"] = KeyPair(bundle.os.certificate).document()
    authority = KeyPair(bundle.kubernetes.certificate).document()
    return {**_head(), "machine": settings, "cluster": {**_cluster(cluster, bundle), "ca": authority}}


def _head() -> Json:
    return {"version": "v1alpha1", "debug": False}


def _machine(role: Role, cluster: ClusterShape, machine: MachineShape, bundle: Bundle) -> Json:
    made: Json = {
        "type": role,
        "token": bundle.trustd_token,
        "certSANs": _sans(cluster) if role == "controlplane" else [],
        "kubelet": {
            "image": f"ghcr.io/siderolabs/kubelet:{cluster.kubernetes}",
            "defaultRuntimeSeccompProfileEnabled": True,
            "disableManifestsDirectory": True,
        },
        "network": {"hostname": machine.hostname},
        "install": {"disk": cluster.install_disk, "image": cluster.installer, "wipe": False},
        "features": {
            "rbac": True,
            "stableHostname": True,
            "apidCheckExtKeyUsage": True,
            "diskQuotaSupport": True,
            "kubePrism": {"enabled": True, "port": KUBE_PRISM_PORT},
            "hostDNS": {"enabled": True, "forwardKubeDNSToHost": True},
        },
    }
    if cluster.time_servers:
        made["time"] = {"servers": list(cluster.time_servers)}
    if machine.labels:
        made["nodeLabels"] = dict(machine.labels)
    return made


def _cluster(cluster: ClusterShape, bundle: Bundle) -> Json:
    return {
        "id": bundle.cluster_id,
        "secret": bundle.cluster_secret,
        "clusterName": cluster.name,
        "controlPlane": {"endpoint": f"https://{_bracketed(cluster.endpoint)}:{cluster.port}"},
        "token": bundle.bootstrap_token,
        "network": {
            "cni": {"name": cluster.cni},
            "dnsDomain": "cluster.local",
            "podSubnets": list(cluster.pod_subnets),
            "serviceSubnets": list(cluster.service_subnets),
        },
        "discovery": {"enabled": False},
    }


def _sans(cluster: ClusterShape) -> list[str]:
    return list(dict.fromkeys((cluster.endpoint, *cluster.cert_sans)))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _pod_security() -> Json:
    latest = {f"{mode}-version": "latest" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "pod-security.admission.config.k8s.io/v1alpha1",
        "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "baseline", "audit": "restricted", "warn": "restricted", **latest},
        "exemptions": {"namespaces": ["kube-system"], "runtimeClasses": [], "usernames": []},
    }


def _audit_policy() -> Json:
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
