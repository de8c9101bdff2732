"""The controller of k0s: the first one makes a cluster, others join it through its join API."""

from __future__ import annotations

import asyncio

from homeport.machinery.address import is_address
from homeport.sim.machine.k0s import release
from homeport.sim.machine.k0s.agent import attach
from homeport.sim.machine.k0s.config import JOIN_PORT, PORT, TUNNEL_PORT, facts_of, read_config, read_vips
from homeport.sim.machine.k0s.journal import Journal
from homeport.sim.machine.k0s.token import CONTROLLER, read_token
from homeport.sim.machine.k0s.unit import Unit
from homeport.sim.machine.k0s.worker import run_kubelet
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.kubeadm.discovery import Discovery
from homeport.sim.machine.kubeadm.init import start_cluster
from homeport.sim.machine.kubeadm.pki import prepare
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.k0s.join import CertificateFiles, JoinRefused, join_api_at
from homeport.sim.machine.workload.k0s.object import k0s_objects
from homeport.sim.machine.workload.kind import Json
from homeport.sim.network.address import normal

PKI = "/var/lib/k0s/pki"


async def run_controller(machine: Machine, unit: Unit, journal: Journal) -> None:
    """Raises KubeadmError, KubeletDown. What was started until then stays, and is not started again."""
    config = read_config(machine, unit)
    if not machine.address:
        raise KubeadmError("failed to determine the API address: the machine has no address")
    if not _started(machine):
        token = unit.flag("token-file")
        if token:
            await _join(machine, unit, config, token, journal)
        else:
            await _initialize(machine, unit, config, journal)
    cluster = machine.cluster
    assert cluster is not None
    await attach(machine, unit)
    cluster.initialized = True
    journal.info("Controller has started")
    if unit.has_worker and machine.kubelet is None:
        await run_kubelet(machine, cluster, unit, journal)


def _started(machine: Machine) -> bool:
    """An attempt before this one got as far as a control plane."""
    return machine.cluster is not None and not machine.cluster.closed and machine.cluster.runs_on(machine)


async def _initialize(machine: Machine, unit: Unit, config: Json, journal: Journal) -> None:
    facts, _ = facts_of(config, machine.address, f"v{machine.k0s}")
    given = prepare(machine.disk, machine.clock, PKI, make=True, external_etcd=facts.external_etcd)
    journal.info(f"using api address: {machine.address}")
    journal.info(f"using storage backend {'kine' if facts.external_etcd else 'etcd'}")
    await machine.pace.take(machine.pace.kubeadm)
    cluster = await start_cluster(machine, facts, given)
    plane = _plane(machine, unit, config)
    if not facts.external_etcd:
        journal.info("Starting etcd", component="etcd")
        cluster.etcd.bootstrap(plane.node, _peer_address(machine, config))
    cluster.add_control_plane(plane)
    await cluster.put(k0s_objects(cluster.facts, frozenset(unit.listed("disable-components"))), "k0s")
    _warn_about_endpoint(machine, cluster, journal)


def _warn_about_endpoint(machine: Machine, cluster: WorkloadCluster, journal: Journal) -> None:
    """k0s itself does not need the external address, but workers and users do."""
    host, port = cluster.facts.endpoint
    try:
        machine.network.find(machine.host.name, host, port)
    except OSError as error:
        journal.warn(
            f"The external address {host}:{port} does not answer: {error.strerror or error}", component="kube-apiserver"
        )


async def _join(machine: Machine, unit: Unit, config: Json, path: str, journal: Journal) -> None:
    try:
        wanted = read_token(machine, path, CONTROLLER)
    except KubeadmError as broken:
        raise KubeadmError(f"failed to join controller: failed to create join client: {broken}") from broken
    server = f"https://{wanted.shown}"
    journal.info(f"Joining existing cluster via {server}")
    cluster, files = await _fetch_authority(machine, wanted, server, journal)
    journal.info("Got valid CA response, storing certificates")
    for name, content in zip(("ca.crt", "ca.key", "sa.key", "sa.pub"), files.authority, strict=True):
        machine.disk.write(f"{PKI}/{name}", content, mode=0o600)
    await machine.pace.take(machine.pace.kubeadm)
    plane = _plane(machine, unit, config)
    journal.info("Starting etcd", component="etcd")
    journal.info(f"Synchronizing etcd config with existing cluster via {server}", component="etcd")
    await _join_etcd(machine, cluster, plane, config, server, journal)
    for name, content in zip(("ca.crt", "ca.key"), files.etcd, strict=True):
        machine.disk.write(f"{PKI}/etcd/{name}", content, mode=0o600)
    machine.cluster = cluster
    cluster.refresh()


async def _fetch_authority(
    machine: Machine, wanted: Discovery, server: str, journal: Journal
) -> tuple[WorkloadCluster, CertificateFiles]:
    failed = f"failed to join controller: failed to join existing cluster via {server}: "
    request = f'Get "{server}/v1beta1/ca"'
    deadline = machine.clock.monotonic() + machine.pace.patience
    last = ""
    while True:
        try:
            if "dns" in machine.lacks and not is_address(wanted.endpoint[0]):
                raise OSError(f"lookup {wanted.endpoint[0]}: Temporary failure in name resolution")
            api = join_api_at(machine.network, machine.host.name, *wanted.endpoint)
            if api is not None:
                return api.cluster, api.authority(wanted.token, wanted.authority)
            why = f"{request}: tls: first record does not look like a TLS handshake"
        except OSError as error:
            why = f"{request}: dial tcp {wanted.shown}: {error.strerror or error}"
        except JoinRefused as refused:
            raise KubeadmError(f"{failed}{refused}") from refused
        if why != last:
            last = why
            journal.warn(f"Failed to join, retrying after backoff: {why}")
        if machine.clock.monotonic() >= deadline:
            raise KubeadmError(failed + why)
        await asyncio.sleep(machine.pace.poll)


async def _join_etcd(
    machine: Machine, cluster: WorkloadCluster, plane: ControlPlane, config: Json, server: str, journal: Journal
) -> None:
    """One after the other: etcd takes one new member at a time."""
    if cluster.facts.external_etcd:
        raise KubeadmError(f"failed to sync etcd config: failed to synchronize etcd config via {server}: not found")
    deadline = machine.clock.monotonic() + machine.pace.patience
    last = ""
    while True:
        try:
            cluster.etcd.add(plane.node, _peer_address(machine, config))
            cluster.add_control_plane(plane)
            cluster.etcd.promote(plane.node)
            return
        except EtcdError as refused:
            if str(refused) != last:
                last = str(refused)
                journal.warn(f"Failed to synchronize etcd config, retrying after backoff: {last}", component="etcd")
            if machine.clock.monotonic() >= deadline:
                raise KubeadmError(
                    "failed to start controller node components: failed to sync etcd config: failed to synchronize "
                    f"etcd config with existing cluster via {server}: {refused}"
                ) from refused
        await asyncio.sleep(machine.pace.poll)


def _plane(machine: Machine, unit: Unit, config: Json) -> ControlPlane:
    spec = config.get("spec") or {}
    api = spec.get("api") or {}
    ports = [int(api.get("k0sApiPort") or JOIN_PORT)]
    disabled = unit.listed("disable-components")
    if "konnectivity-server" not in disabled and not unit.has("single"):
        ports.append(int((spec.get("konnectivity") or {}).get("agentPort") or TUNNEL_PORT))
    vips = read_vips(spec.get("network") or {})
    return ControlPlane(
        machine,
        _member_name(machine, config),
        normal(str(api.get("address") or machine.address)),
        int(api.get("port") or PORT),
        vips[0] if vips else None,
        tuple(ports),
        release.kubernetes(machine.k0s),
        tuple(vips[1:]),
    )


def _member_name(machine: Machine, config: Json) -> str:
    extra = _etcd(config).get("extraArgs") or {}
    return str(extra.get("name") or machine.hostname.lower())


def _peer_address(machine: Machine, config: Json) -> str:
    return normal(str(_etcd(config).get("peerAddress") or machine.address))


def _etcd(config: Json) -> Json:
    return (((config.get("spec") or {}).get("storage") or {}).get("etcd")) or {}
