"""`kubeadm init`: a first control plane, and with it a workload cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from homeport.api.meta import Resource
from homeport.client.errors import ApiError
from homeport.sim.machine import yaml
from homeport.sim.machine.kubeadm.config import (
    Documents,
    KubeadmError,
    Registering,
    read_facts,
    read_registering,
    timeout_of,
)
from homeport.sim.machine.kubeadm.pki import ControlPlaneCertificates, prepare
from homeport.sim.machine.kubeadm.preflight import check_control_plane, check_versions
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload import addon
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.facts import Facts, parse_version
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.machine.workload.network.vip import VipConfig, read_kube_vip
from homeport.sim.machine.workload.node import KubeletProblem, Registration, build_node
from homeport.sim.machine.workload.object import bootstrap_tokens, config_maps
from homeport.sim.machine.workload.pod.staticpod import COMPONENTS, component, read_manifest
from homeport.sim.machine.workload.trust.authority import ClusterPki
from homeport.sim.machine.workload.trust.rbac import kubeadm_rbac

MANIFESTS = "/etc/kubernetes/manifests"
_ADMIN_CONF = "/etc/kubernetes/admin.conf"
_CRI = {"kubeadm.alpha.kubernetes.io/cri-socket": "unix:///run/containerd/containerd.sock"}


async def run_init(machine: Machine, documents: Documents, skipped: frozenset[str]) -> None:
    """Raises KubeadmError. What was started until then stays."""
    say = machine.console.say
    init: Json = documents.kinds.get("InitConfiguration") or {}
    skipped |= frozenset(init.get("skipPhases") or ())
    registering = read_registering(init, machine.hostname)
    address, port = local_endpoint(init.get("localAPIEndpoint") or {}, machine)
    facts = read_facts(documents, address, machine.installed)
    say(f"[init] Using Kubernetes version: {facts.version}")
    say("[preflight] Running pre-flight checks")
    check_control_plane(machine, registering)
    check_versions(machine, registering, facts.version)
    await machine.pace.take(machine.pace.kubeadm)
    given = prepare(machine.disk, machine.clock, make=True, external_etcd=facts.external_etcd)
    say(f'[certs] Using certificateDir folder "{facts.configuration["certificatesDir"]}"')
    registration = registration_of(machine, registering, facts, control_plane=True)
    check_kubelet(machine, registration)
    cluster = await start_cluster(machine, facts, given, [registering.name, address, *machine.host.addresses])
    write_kubeconfigs(machine, cluster)
    vip = write_manifests(machine, facts, address, port)
    if not facts.external_etcd:
        cluster.etcd.bootstrap(registering.name, address)
    cluster.add_control_plane(ControlPlane(machine, registering.name, address, port, usable_vip(vip, facts)))
    seconds = timeout_of(init, "controlPlaneComponentHealthCheck", machine.pace.patience)
    await await_endpoint(machine, cluster, seconds)
    say('[upload-config] Storing the configuration used in ConfigMap "kubeadm-config" in the "kube-system" Namespace')
    await cluster.put(init_objects(machine, cluster, init, skipped))
    await register(machine, cluster, registration)
    cluster.initialized = True
    cluster.add_control_plane(ControlPlane(machine, registering.name, address, port, vip))
    say("Your Kubernetes control-plane has initialized successfully!")


def local_endpoint(given: Json, machine: Machine) -> tuple[str, int]:
    """The address that this machine's API server announces, which must be its own."""
    address = str(given.get("advertiseAddress") or "")
    if address in ("", "0.0.0.0", "::"):  # noqa: S104 - comparing, not binding
        address = machine.address
    if not address:
        raise KubeadmError("unable to select an IP from default routes: the machine has no address")
    if address not in machine.host.addresses:
        raise KubeadmError(
            f"error execution phase wait-control-plane: the API server can't listen on {address}, which is not an "
            f"address of this machine ({', '.join(machine.host.addresses)})"
        )
    return address, int(given.get("bindPort") or 6443)


def registration_of(machine: Machine, registering: Registering, facts: Facts, *, control_plane: bool) -> Registration:
    name = registering.arguments.get("hostname-override") or registering.name
    return Registration(
        name=name,
        addresses=tuple(machine.host.addresses),
        version=f"v{machine.installed}",
        os_image=machine.os_image,
        machine_id=machine.system_uuid or machine.id,
        cpus=machine.cpus,
        memory_bytes=machine.memory_bytes,
        arguments=registering.arguments,
        taints=registering.taints,
        control_plane=control_plane,
        annotations=dict(_CRI),
    )


def check_kubelet(machine: Machine, registration: Registration) -> None:
    """A kubelet that does not start brings up nothing at all."""
    try:
        build_node(registration, machine.clock.now())
    except (KubeletProblem, ValueError) as problem:
        machine.console.say(f"kubelet: E0000 {problem}")
        raise KubeadmError(
            "error execution phase wait-control-plane: The kubelet is not running: "
            f'Get "http://127.0.0.1:10248/healthz": connect: connection refused ({problem})'
        ) from problem


async def start_cluster(
    machine: Machine, facts: Facts, given: ControlPlaneCertificates, names: Iterable[str] = ()
) -> WorkloadCluster:
    """`names`: what the certificate of its first control plane is good for, besides those of the configuration."""
    hosts = [facts.endpoint[0], *facts.cert_sans, addon.service_address(facts, 1), *names]
    pki = ClusterPki.of(given.cluster, given.signing_key, hosts, machine.clock)
    cluster = await WorkloadCluster.start(facts, pki, given.etcd, machine.network, machine.clock, machine.pace.rng)
    machine.cluster = cluster
    return cluster


def write_kubeconfigs(machine: Machine, cluster: WorkloadCluster) -> None:
    """Empty but for a name: what matters here is that they are there."""
    names = ["admin", "controller-manager", "scheduler", "kubelet"]
    if parse_version(cluster.facts.version) >= (1, 29, 0):
        names.append("super-admin")
    for name in names:
        text = f"apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: {cluster.facts.server}\n"
        machine.disk.write(f"/etc/kubernetes/{name}.conf", text.encode(), mode=0o600)


def write_manifests(machine: Machine, facts: Facts, address: str, port: int) -> VipConfig | None:
    """The control plane's own, beside those that were there; kube-vip's configuration if it is among them."""
    for name in COMPONENTS:
        if name != "etcd" or not facts.external_etcd:
            text = yaml.dump(component(name, facts, address, port))
            machine.disk.write(f"{MANIFESTS}/{name}.yaml", text.encode(), mode=0o600)
    return next(filter(None, map(read_kube_vip, static_pods(machine))), None)


def static_pods(machine: Machine) -> list[Json]:
    found = (read_manifest(machine.disk.text(path) or "") for path in machine.disk.under(MANIFESTS))
    return [manifest for manifest in found if manifest is not None]


def usable_vip(vip: VipConfig | None, facts: Facts) -> VipConfig | None:
    """From 1.29 on admin.conf has no rights until kubeadm, through the endpoint, has given them: kube-vip waits for
    its lease, and kubeadm for kube-vip. Only super-admin.conf gets a first control plane out of this."""
    if vip is not None and vip.kubeconfig == _ADMIN_CONF and parse_version(facts.version) >= (1, 29, 0):
        return None
    return vip


async def await_endpoint(machine: Machine, cluster: WorkloadCluster, seconds: float) -> None:
    machine.console.say(
        "[wait-control-plane] Waiting for the kubelet to boot up the control plane as static Pods from directory "
        f'"{MANIFESTS}". This can take up to {seconds:.0f}s'
    )
    deadline = machine.clock.monotonic() + seconds
    while not cluster.reachable(machine):
        if machine.clock.monotonic() >= deadline:
            host, port = cluster.facts.endpoint
            raise KubeadmError(
                "error execution phase wait-control-plane: couldn't initialize a Kubernetes cluster: "
                f"timed out waiting for the condition: {unreachable_because(machine, cluster, host, port)}"
            )
        await asyncio.sleep(machine.pace.poll)


def unreachable_because(machine: Machine, cluster: WorkloadCluster, host: str, port: int) -> str:
    where = f'Get "{cluster.facts.server}/healthz?timeout=10s"'
    try:
        machine.network.find(machine.host.name, host, port)
    except OSError as error:
        return f"{where}: dial tcp {host}:{port}: {error.strerror or error}"
    return f"{where}: tls: failed to verify certificate: x509: certificate signed by unknown authority"


def init_objects(
    machine: Machine, cluster: WorkloadCluster, init: Json, skipped: frozenset[str]
) -> Iterator[tuple[Json, Resource]]:
    yield from config_maps(cluster.facts, cluster.pki)
    yield from kubeadm_rbac(cluster.facts)
    if "bootstrap-token" not in skipped:
        yield from bootstrap_tokens(list(init.get("bootstrapTokens") or ()), machine.clock.now())
    if not skipped & {"addon", "addon/coredns"}:
        yield from addon.coredns(cluster.facts)
    if not skipped & {"addon", "addon/kube-proxy"}:
        yield from addon.kube_proxy(cluster.facts)


async def register(machine: Machine, cluster: WorkloadCluster, registration: Registration) -> None:
    """The node, its Lease and its static Pods; from now on it is kept alive."""
    await machine.pace.take(machine.pace.kubelet)
    kubelet = Kubelet(machine, registration.name, cluster, static_pods(machine))
    try:
        await kubelet.register(registration)
    except (ApiError, KubeletProblem) as problem:
        machine.console.say(f"kubelet: E0000 Unable to register node with API server: {problem}")
        raise KubeadmError(f'error uploading crisocket: nodes "{registration.name}" not found ({problem})') from problem
    machine.cluster = cluster
    machine.kubelet = kubelet
    machine.console.say(f"kubelet: Successfully registered node {registration.name}")
    cluster.refresh()
