"""ClusterConfig: the file that a controller of k0s is started with."""

from __future__ import annotations

from typing import Any

from homeport.machinery.address import is_address
from homeport.sim.machine import yaml
from homeport.sim.machine.k0s.unit import Unit
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.k0s.check import problems_of
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.network.vip import VipConfig
from homeport.sim.network.address import normal

PORT, JOIN_PORT, TUNNEL_PORT = 6443, 9443, 8132
_DEFAULT_PATH = "/etc/k0s/k0s.yaml"
_COMPONENTS = frozenset(
    {
        "applier-manager", "autopilot", "control-api", "coredns", "csr-approver", "endpoint-reconciler", "helm",
        "konnectivity-server", "kube-controller-manager", "kube-proxy", "kube-scheduler", "metrics-server",
        "network-provider", "node-role", "system-rbac", "update-prober", "windows-node", "worker-config",
    }
)  # fmt: skip


def check_config(machine: Machine, unit: Unit) -> None:
    """What `k0s install` checks already. Raises KubeadmError."""
    if unit.role == "controller":
        read_config(machine, unit)


def read_config(machine: Machine, unit: Unit) -> Json:
    """The file's content; k0s has a default for everything. Raises KubeadmError."""
    path = unit.flag("config")
    text = machine.disk.text(path or _DEFAULT_PATH)
    if text is None and path:
        raise KubeadmError(f"failed to load node config: open {path}: no such file or directory")
    config = parse_config(text or "", path or _DEFAULT_PATH)
    for name in unit.listed("disable-components"):
        if name not in _COMPONENTS:
            raise KubeadmError(f"unknown component {name}")
    problems = problems_of(config.get("spec") or {}, single=unit.has("single"))
    if problems:
        raise KubeadmError(f"invalid node config: {'; '.join(problems)}")
    return config


def parse_config(text: str, path: str) -> Json:
    """Raises KubeadmError."""
    try:
        config = yaml.load(text) or {}
    except yaml.YAMLError as broken:
        shown = " ".join(str(broken).split())
        raise KubeadmError(f"failed to load node config: {path}: error converting YAML to JSON: {shown}") from broken
    if not isinstance(config, dict) or not isinstance(config.get("spec") or {}, dict):
        raise KubeadmError(f"failed to load node config: {path}: not a ClusterConfig")
    return config


def read_facts(text: str, path: str, address: str, version: str) -> tuple[Facts, list[VipConfig]]:
    """A cluster from its k0s.yaml. Raises KubeadmError."""
    return facts_of(parse_config(text, path), address, version)


def facts_of(config: Json, address: str, version: str) -> tuple[Facts, list[VipConfig]]:
    spec: dict[str, Any] = config.get("spec") or {}
    api, network, storage = spec.get("api") or {}, spec.get("network") or {}, spec.get("storage") or {}
    host = normal(str(api.get("externalAddress") or api.get("address") or address))
    facts = Facts(
        name=str((config.get("metadata") or {}).get("name") or "k0s"),
        version=version.partition("+")[0],
        endpoint=(host, int(api.get("port") or PORT)),
        flavour="k0s",
        service_subnet=str(network.get("serviceCIDR") or "10.96.0.0/12"),
        pod_subnet=str(network.get("podCIDR") or "10.244.0.0/16"),
        dns_domain=str(network.get("clusterDomain") or "cluster.local"),
        cert_sans=tuple(str(each) for each in api.get("sans") or ()),
        external_etcd=str(storage.get("type") or "etcd") != "etcd"
        or bool((storage.get("etcd") or {}).get("externalCluster")),
        configuration={
            "dns": {},
            "proxy": {"disabled": bool((network.get("kubeProxy") or {}).get("disabled"))},
            "network": str(network.get("provider") or "kuberouter"),
            "workerProfiles": [str(each.get("name")) for each in spec.get("workerProfiles") or ()],
        },
    )
    return facts, read_vips(network)


def read_vips(network: dict[str, Any]) -> list[VipConfig]:
    """k0s' own load balancing of the control plane."""
    balancing = network.get("controlPlaneLoadBalancing") or {}
    if not balancing.get("enabled"):
        return []
    instances = (balancing.get("keepalived") or {}).get("vrrpInstances") or ()
    addresses = [normal(str(each).partition("/")[0]) for one in instances for each in one.get("virtualIPs") or ()]
    return [VipConfig(each, lease_seconds=3.0, program="keepalived") for each in addresses if is_address(each)]
