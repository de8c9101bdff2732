"""A checked machine configuration, as far as the simulation acts on it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from homeport.machinery.talos.certificate import KeyPair
from homeport.sim.machine import yaml
from homeport.sim.machine.talos.check import CONTROL_PLANES, check_config
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.network.vip import VipConfig, read_kube_vip
from homeport.sim.network import split_endpoint
from homeport.sim.network.address import normal

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TalosConfig:
    machine: Json
    cluster: Json
    facts: Facts

    @property
    def kind(self) -> str:
        return str(self.machine["type"])

    @property
    def control_plane(self) -> bool:
        return self.kind in CONTROL_PLANES

    @property
    def token(self) -> str:
        """With which kubelets join."""
        return str(self.cluster["token"])

    @property
    def hostname(self) -> str:
        return str((self.machine.get("network") or {}).get("hostname") or "")

    @property
    def arguments(self) -> dict[str, str]:
        given = (self.machine.get("kubelet") or {}).get("extraArgs") or {}
        return {str(key): str(value) for key, value in given.items()}

    @property
    def labels(self) -> dict[str, str]:
        return {str(key): str(value) for key, value in (self.machine.get("nodeLabels") or {}).items()}

    @property
    def os_authority(self) -> KeyPair:
        return _pair(self.machine.get("ca"))

    @property
    def cluster_authority(self) -> KeyPair:
        return _pair(self.cluster.get("ca"))

    @property
    def cni(self) -> str:
        return str(((self.cluster.get("network") or {}).get("cni") or {}).get("name") or "flannel")

    @property
    def pods_on_control_planes(self) -> bool:
        fields = ("allowSchedulingOnControlPlanes", "allowSchedulingOnMasters")
        return any(bool(self.cluster.get(field)) for field in fields)

    def manifests(self) -> Iterator[Json]:
        """Objects that Talos creates in the cluster once its API answers."""
        for each in self.cluster.get("inlineManifests") or ():
            for found in yaml.load_all(str(each.get("contents") or "")):
                if isinstance(found, dict):
                    yield found

    def vip(self) -> VipConfig | None:
        """The address that control planes share: Talos' own, or one that kube-vip holds."""
        for interface in (self.machine.get("network") or {}).get("interfaces") or ():
            address = (interface.get("vip") or {}).get("ip")
            if address:
                return VipConfig(normal(str(address)))
        for found in self.manifests():
            if found.get("kind") == "DaemonSet":
                held = read_kube_vip(found["spec"]["template"])
                if held is not None:
                    return held
        return None


def read_config(text: bytes, machine: Machine) -> TalosConfig:
    """Raises ConfigRefused for what Talos would not apply."""
    document = check_config(text)
    settings, cluster = document["machine"], document["cluster"]
    tag = str((settings.get("kubelet") or {}).get("image") or "").rpartition(":")[2]
    network = cluster.get("network") or {}
    facts = Facts(
        name=str(cluster.get("clusterName") or "talos"),
        version=tag if tag.startswith("v") else f"v{machine.installed}",
        endpoint=split_endpoint(str(cluster["controlPlane"]["endpoint"])),
        flavour="talos",
        service_subnet=str((network.get("serviceSubnets") or ["10.96.0.0/12"])[0]),
        pod_subnet=str((network.get("podSubnets") or ["10.244.0.0/16"])[0]),
        dns_domain=str(network.get("dnsDomain") or "cluster.local"),
        cert_sans=tuple(str(each) for each in (cluster.get("apiServer") or {}).get("certSANs") or ()),
        configuration={"proxy": cluster.get("proxy") or {}, "dns": cluster.get("coreDNS") or {}},
    )
    return TalosConfig(settings, cluster, facts)


def _pair(given: Json | None) -> KeyPair:
    found = given or {}
    return KeyPair(base64.b64decode(found.get("crt") or ""), base64.b64decode(found.get("key") or ""))
