"""Talos on a simulated machine: it applies a machine configuration, and starts Kubernetes on request.

A `controlplane` waits for the bootstrap call, as the real one does; `init` does not. Workers and further control planes
join when the endpoint answers with the authority and the token of their configuration.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import Any

from homeport.sim.machine.kubeadm.config import KubeadmError, Registering
from homeport.sim.machine.kubeadm.discovery import Discovery, authenticate, discover
from homeport.sim.machine.kubeadm.init import await_endpoint, check_kubelet, register, registration_of, start_cluster
from homeport.sim.machine.kubeadm.pki import ControlPlaneCertificates
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload import addon
from homeport.sim.machine.workload.authority import (
    Authority,
    CertificateProblem,
    load_authority,
    load_key,
    make_authority,
)
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.node import CONTROL_PLANE
from homeport.sim.machine.workload.object import admin_map, bootstrap_token
from homeport.sim.machine.workload.rbac import kubeadm_rbac
from homeport.sim.machine.workload.vip import VipConfig
from homeport.sim.network import split_endpoint
from homeport.sim.network.address import normal

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TalosConfig:
    kind: str  # init, controlplane or worker
    facts: Facts
    token: str
    hostname: str
    authority: bytes
    vip: VipConfig | None
    arguments: dict[str, str]
    cluster: Json


def read_config(document: Json, machine: Machine) -> TalosConfig:
    """Raises KubeadmError for what Talos would not apply."""
    settings, cluster = document.get("machine") or {}, document.get("cluster") or {}
    kind = str(settings.get("type") or "")
    if kind not in ("init", "controlplane", "worker"):
        raise KubeadmError(f"invalid machine type: {kind!r}")
    endpoint = str((cluster.get("controlPlane") or {}).get("endpoint") or "")
    try:
        where = split_endpoint(endpoint)
    except ValueError as wrong:
        raise KubeadmError(f"cluster.controlPlane.endpoint: {wrong}") from wrong
    kubelet = settings.get("kubelet") or {}
    tag = str(kubelet.get("image") or "").rpartition(":")[2]
    version = tag if tag.startswith("v") else f"v{machine.installed}"
    network = cluster.get("network") or {}
    facts = Facts(
        name=str(cluster.get("clusterName") or "talos"),
        version=version,
        endpoint=where,
        flavour="talos",
        service_subnet=str((network.get("serviceSubnets") or ["10.96.0.0/12"])[0]),
        pod_subnet=str((network.get("podSubnets") or ["10.244.0.0/16"])[0]),
        dns_domain=str(network.get("dnsDomain") or "cluster.local"),
        cert_sans=tuple(str(each) for each in (cluster.get("apiServer") or {}).get("certSANs") or ()),
        configuration={"proxy": cluster.get("proxy") or {}},
    )
    token = str(cluster.get("token") or "")
    if not token:
        raise KubeadmError("cluster.token is required")
    return TalosConfig(
        kind,
        facts,
        token,
        str((settings.get("network") or {}).get("hostname") or ""),
        _decoded("cluster.ca.crt", (cluster.get("ca") or {}).get("crt")),
        _vip(settings.get("network") or {}),
        {str(key): str(value) for key, value in (kubelet.get("extraArgs") or {}).items()},
        cluster,
    )


def _decoded(name: str, value: Any) -> bytes:
    try:
        found = base64.b64decode(str(value or ""), validate=True)
    except binascii.Error as broken:
        raise KubeadmError(f"{name}: {broken}") from broken
    if not found:
        raise KubeadmError(f"{name} is required")
    return found


def _vip(network: Json) -> VipConfig | None:
    for interface in network.get("interfaces") or ():
        address = (interface.get("vip") or {}).get("ip")
        if address:
            return VipConfig(normal(str(address)))
    return None


async def run_talos(machine: Machine, document: Json, bootstrap: asyncio.Event) -> None:
    """Applies a configuration. Raises KubeadmError; the machine then stays in maintenance."""
    config = read_config(document, machine)
    machine.hostname = config.hostname or machine.hostname
    machine.console.say(f"[talos] applied machine configuration, type {config.kind}")
    if config.kind == "worker":
        await _join(machine, config, control_plane=False)
        return
    if config.kind == "init":
        await _bootstrap(machine, config)
        return
    machine.console.say(
        "[talos] etcd is waiting to join the cluster, if this node is the first node, run `talosctl bootstrap`"
    )
    waiting = asyncio.create_task(bootstrap.wait())
    joining = asyncio.create_task(discover(machine, _discovery(config), 1e9))
    try:
        await asyncio.wait({waiting, joining}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            await _bootstrap(machine, config)
        else:
            joining.result()
            await _join(machine, config, control_plane=True)
    finally:
        waiting.cancel()
        joining.cancel()
        await asyncio.gather(waiting, joining, return_exceptions=True)


def _discovery(config: TalosConfig) -> Discovery:
    return Discovery(config.facts.endpoint, config.token, authority=config.authority)


async def _bootstrap(machine: Machine, config: TalosConfig) -> None:
    given = _given(machine, config)
    await machine.pace.take(machine.pace.kubeadm)
    cluster = await start_cluster(machine, config.facts, given)
    node = machine.hostname.lower()
    cluster.etcd.bootstrap(node, machine.address)
    cluster.add_control_plane(ControlPlane(machine, node, machine.address, 6443, config.vip))
    await await_endpoint(machine, cluster, machine.pace.patience)
    await cluster.put(kubeadm_rbac(config.facts), "talos")
    await cluster.put(addon.coredns(config.facts), "talos")
    await cluster.put(addon.kube_proxy(config.facts), "talos")
    token = {"token": config.token, "ttl": "0s", "usages": ["authentication", "signing"]}
    await cluster.put([bootstrap_token(token, machine.clock.now()), admin_map()], "talos")
    cluster.initialized = True
    await _register(machine, cluster, config, control_plane=True)


async def _join(machine: Machine, config: TalosConfig, *, control_plane: bool) -> None:
    cluster = await discover(machine, _discovery(config), 1e9)  # Talos never gives up
    authenticate(cluster, config.token)
    if control_plane:
        given = _given(machine, config)
        if (
            cluster.etcd_authority is not None
            and given.etcd is not None
            and not given.etcd.same_as(cluster.etcd_authority)
        ):
            raise KubeadmError("etcd: authentication handshake failed: x509: certificate signed by unknown authority")
        node = machine.hostname.lower()
        try:
            cluster.etcd.add(node, machine.address)
            cluster.add_control_plane(ControlPlane(machine, node, machine.address, 6443, config.vip))
            cluster.etcd.promote(node)
        except EtcdError as refused:
            raise KubeadmError(f"etcd: {refused}") from refused
        cluster.refresh()
    await _register(machine, cluster, config, control_plane=control_plane)


async def _register(machine: Machine, cluster: WorkloadCluster, config: TalosConfig, *, control_plane: bool) -> None:
    allowed = bool(
        config.cluster.get("allowSchedulingOnControlPlanes") or config.cluster.get("allowSchedulingOnMasters")
    )
    taints = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if control_plane and not allowed else []
    registering = Registering(name=machine.hostname.lower(), taints=taints, arguments=config.arguments)
    registration = registration_of(machine, registering, cluster.facts, control_plane=control_plane)
    registration.version = config.facts.version
    registration.annotations = {}
    check_kubelet(machine, registration)
    await register(machine, cluster, registration)


def _given(machine: Machine, config: TalosConfig) -> ControlPlaneCertificates:
    cluster = config.cluster
    try:
        key = _decoded("cluster.ca.key", (cluster.get("ca") or {}).get("key"))
        authority = load_authority("cluster.ca", config.authority, key, machine.clock)
        account = (cluster.get("serviceAccount") or {}).get("key")
        signing = load_key("cluster.serviceAccount", _decoded("cluster.serviceAccount.key", account))
        etcd = (cluster.get("etcd") or {}).get("ca") or {}
        members: Authority = (
            load_authority(
                "cluster.etcd.ca", _decoded("crt", etcd.get("crt")), _decoded("key", etcd.get("key")), machine.clock
            )
            if etcd
            else make_authority("etcd", machine.clock)
        )
    except CertificateProblem as problem:
        raise KubeadmError(str(problem)) from problem
    return ControlPlaneCertificates(authority, members, authority, signing)
