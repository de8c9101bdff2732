"""A configured machine: a control plane waits for the bootstrap call or joins; a worker joins."""

from __future__ import annotations

import asyncio
import base64

from homeport.sim.machine.kubeadm.config import KubeadmError, Registering
from homeport.sim.machine.kubeadm.discovery import Discovery, authenticate, discover
from homeport.sim.machine.kubeadm.init import check_kubelet, register, registration_of, start_cluster
from homeport.sim.machine.kubeadm.init import unreachable_because as why_unreachable
from homeport.sim.machine.kubeadm.pki import ControlPlaneCertificates
from homeport.sim.machine.talos.config import TalosConfig
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload import addon
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.network.flannel import flannel
from homeport.sim.machine.workload.node import CONTROL_PLANE
from homeport.sim.machine.workload.object import admin_map, bootstrap_token
from homeport.sim.machine.workload.trust.authority import CertificateProblem, load_authority, load_key
from homeport.sim.machine.workload.trust.rbac import kubeadm_rbac

_FOREVER = 1e9  # Talos never gives up


async def run_machine(machine: Machine, config: TalosConfig, bootstrap: asyncio.Event) -> None:
    """Until the machine is a node. Raises KubeadmError."""
    machine.hostname = config.hostname or machine.hostname
    machine.console.say(f"[talos] applied machine configuration, type {config.kind}")
    if config.kind == "init":
        await _bootstrap(machine, config)
    elif config.control_plane:
        await _await_bootstrap(machine, config, bootstrap)
    else:
        await _join(machine, config, await discover(machine, _discovery(config), _FOREVER))


async def _await_bootstrap(machine: Machine, config: TalosConfig, bootstrap: asyncio.Event) -> None:
    machine.console.say(
        "[talos] etcd is waiting to join the cluster, if this node is the first node, run `talosctl bootstrap`"
    )
    waiting = asyncio.create_task(bootstrap.wait())
    joining = asyncio.create_task(discover(machine, _discovery(config), _FOREVER))
    try:
        await asyncio.wait({waiting, joining}, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            await _bootstrap(machine, config)
        else:
            cluster = joining.result()
            _join_etcd(machine, config, cluster)
            await _join(machine, config, cluster)
    finally:
        waiting.cancel()
        joining.cancel()
        await asyncio.gather(waiting, joining, return_exceptions=True)


def _discovery(config: TalosConfig) -> Discovery:
    return Discovery(config.facts.endpoint, config.token, authority=config.cluster_authority.certificate)


async def _bootstrap(machine: Machine, config: TalosConfig) -> None:
    given = _given(machine, config)
    await machine.pace.take(machine.pace.kubeadm)
    cluster = await start_cluster(machine, config.facts, given)
    node = machine.hostname.lower()
    cluster.etcd.bootstrap(node, machine.address)
    cluster.add_control_plane(ControlPlane(machine, node, machine.address, 6443, config.vip()))
    await _await_endpoint(machine, cluster)
    await _put_manifests(machine, cluster, config)
    cluster.initialized = True
    await _register(machine, cluster, config)


async def _await_endpoint(machine: Machine, cluster: WorkloadCluster) -> None:
    last = ""
    while not cluster.reachable(machine):
        reason = why_unreachable(machine, cluster, *cluster.facts.endpoint)
        if reason != last:
            last = reason
            machine.console.say(f"[talos] kubelet: the control plane endpoint does not answer: {reason}")
        await asyncio.sleep(machine.pace.poll)


async def _put_manifests(machine: Machine, cluster: WorkloadCluster, config: TalosConfig) -> None:
    await cluster.put(kubeadm_rbac(config.facts), "talos")
    await cluster.put(addon.coredns(config.facts), "talos")
    await cluster.put(addon.kube_proxy(config.facts), "talos")
    if config.cni == "flannel":
        await cluster.put(flannel(), "talos")
    token = {"token": config.token, "ttl": "0s", "usages": ["authentication", "signing"]}
    await cluster.put([bootstrap_token(token, machine.clock.now()), admin_map()], "talos")
    for found in config.manifests():
        group, _, version = str(found.get("apiVersion", "")).rpartition("/")
        served = cluster.server.catalog.by_kind(group, str(found.get("kind", "")))
        if served is None or version not in served.versions:
            machine.console.say(f"[talos] manifest: no matches for kind {found.get('kind')!r}")
            continue
        await cluster.put([(found, served.versions[version].resource)], "talos")


def _join_etcd(machine: Machine, config: TalosConfig, cluster: WorkloadCluster) -> None:
    own, others = _given(machine, config).etcd, cluster.etcd_authority
    if own is not None and others is not None and not own.same_as(others):
        raise KubeadmError("etcd: authentication handshake failed: x509: certificate signed by unknown authority")
    node = machine.hostname.lower()
    try:
        cluster.etcd.add(node, machine.address)
        cluster.add_control_plane(ControlPlane(machine, node, machine.address, 6443, config.vip()))
        cluster.etcd.promote(node)
    except EtcdError as refused:
        raise KubeadmError(f"etcd: {refused}") from refused
    cluster.refresh()


async def _join(machine: Machine, config: TalosConfig, cluster: WorkloadCluster) -> None:
    if not cluster.initialized and not cluster.hosted:
        machine.console.say("[talos] kubelet: waiting for the cluster to know the bootstrap token")
    while True:
        if cluster.initialized or cluster.hosted:  # the token is among the manifests of the first machine
            break
        await asyncio.sleep(machine.pace.poll)
    authenticate(cluster, config.token)
    await _register(machine, cluster, config)


async def _register(machine: Machine, cluster: WorkloadCluster, config: TalosConfig) -> None:
    reserved = config.control_plane and not config.pods_on_control_planes
    taints = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if reserved else []
    arguments = dict(config.arguments)
    labels = ",".join(f"{key}={value}" for key, value in config.labels.items())
    if labels:
        arguments["node-labels"] = ",".join(filter(None, (arguments.get("node-labels"), labels)))
    registering = Registering(name=machine.hostname.lower(), taints=taints, arguments=arguments)
    registration = registration_of(machine, registering, cluster.facts, control_plane=config.control_plane)
    registration.version = config.facts.version
    registration.annotations = {}
    check_kubelet(machine, registration)
    await register(machine, cluster, registration)


def _given(machine: Machine, config: TalosConfig) -> ControlPlaneCertificates:
    cluster = config.cluster
    etcd = cluster["etcd"]["ca"]
    try:
        authority = load_authority(
            "cluster.ca", config.cluster_authority.certificate, config.cluster_authority.key, machine.clock
        )
        members = load_authority("cluster.etcd.ca", _decoded(etcd["crt"]), _decoded(etcd["key"]), machine.clock)
        signing = load_key("cluster.serviceAccount", _decoded(cluster["serviceAccount"]["key"]))
    except CertificateProblem as problem:
        raise KubeadmError(str(problem)) from problem
    return ControlPlaneCertificates(authority, members, authority, signing)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text)
