"""The programs beside an API server: controller manager, scheduler, konnectivity and kine."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from urllib.parse import urlsplit

from cryptography import x509

from homeport.apiserver.auth.certificate import Issuer
from homeport.runtime.workload.coroutine import ContainerHandle
from homeport.sim.hosted.apiserver import first, listen
from homeport.sim.hosted.cluster import HostedClusters
from homeport.sim.hosted.health import HealthPort
from homeport.sim.hosted.pod import PodHost
from homeport.sim.hosted.program import Program, ProgramError, signed_by
from homeport.sim.hosted.storage import KinePort
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.cluster import ApiService, WorkloadCluster
from homeport.sim.machine.workload.controller import MANAGER, SCHEDULER, SIGNER, TOKENS
from homeport.sim.machine.workload.k0s.tunnel import TunnelPort
from homeport.sim.network import Balancer, Service, split_endpoint

_PAUSE_SECONDS = 0.5
MANAGER_PORT, SCHEDULER_PORT = 10257, 10259


async def run_controller_manager(
    clusters: HostedClusters, pod: PodHost, program: Program, inside: ContainerHandle, health: HealthPort
) -> None:
    roles = {MANAGER}
    issuer: Issuer | None = None
    if program.flag("cluster-signing-cert-file"):
        issuer = Issuer(*program.pair("cluster-signing-cert-file", "cluster-signing-key-file"))
        roles.add(SIGNER)
    for name in ("service-account-private-key-file", "root-ca-file", "client-ca-file"):
        program.file(name, required=False)
    if "bootstrapsigner" in program.flag("controllers").split(","):
        roles.add(TOKENS)

    def begin(cluster: WorkloadCluster) -> None:
        if issuer is not None and issuer.certificate == cluster.pki.issuer.certificate:
            cluster.pki.issuer = issuer

    port = program.number("secure-port", MANAGER_PORT)
    await _run_beside(clusters, pod, program, inside, health, port, frozenset(roles), begin)


async def run_scheduler(
    clusters: HostedClusters, pod: PodHost, program: Program, inside: ContainerHandle, health: HealthPort
) -> None:
    port = program.number("secure-port", SCHEDULER_PORT)
    await _run_beside(clusters, pod, program, inside, health, port, frozenset({SCHEDULER}), lambda cluster: None)


async def _run_beside(
    clusters: HostedClusters,
    pod: PodHost,
    program: Program,
    inside: ContainerHandle,
    health: HealthPort,
    port: int,
    roles: frozenset[str],
    begin: Callable[[WorkloadCluster], None],
) -> None:
    """A client of the API server, until it is stopped or the cluster is lost."""
    config = read_kubeconfig(program)
    await listen(pod, port, health)
    try:
        inside.ready()
        cluster = await _find(pod, program, inside, config)
        if cluster is None:
            return
        begin(cluster)
        program.launch.log("I leaderelection.go:271] successfully acquired lease")
        clusters.join(cluster, roles)
        try:
            await first(inside.stopping, clusters.lost(cluster))
        finally:
            clusters.leave(cluster, roles)
        if not inside.stopping.is_set():
            raise ProgramError("leaderelection lost")
    finally:
        await pod.unlisten(port)


class KubeconfigFile:
    def __init__(self, server: str, authorities: list[x509.Certificate], client: x509.Certificate | None) -> None:
        self.server = server
        self.endpoint = split_endpoint(server)
        self.authorities = authorities
        self.client = client


def read_kubeconfig(program: Program, flag: str = "kubeconfig") -> KubeconfigFile:
    """Raises ProgramError."""
    path = program.flag(flag)
    text = program.file(flag)
    try:
        config = yaml.load(text.decode())
        context = next(each["context"] for each in config["contexts"] if each["name"] == config["current-context"])
        cluster = next(each["cluster"] for each in config["clusters"] if each["name"] == context["cluster"])
        user = next(each["user"] for each in config["users"] if each["name"] == context["user"])
        authorities = x509.load_pem_x509_certificates(base64.b64decode(cluster["certificate-authority-data"]))
        pem = base64.b64decode(user.get("client-certificate-data") or "")
        client = x509.load_pem_x509_certificate(pem) if pem else None
        return KubeconfigFile(str(cluster["server"]), authorities, client)
    except (yaml.YAMLError, KeyError, StopIteration, TypeError, ValueError, AttributeError, binascii.Error) as broken:
        raise ProgramError(
            f"error loading config file {path!r}: {' '.join(str(broken).split()) or broken!r}"
        ) from broken


async def _find(
    pod: PodHost, program: Program, inside: ContainerHandle, config: KubeconfigFile
) -> WorkloadCluster | None:
    """The cluster at the server of the kubeconfig; None: stopped before it answered."""
    last = ""
    while not inside.stopping.is_set():
        found, why = _look(pod, config)
        if found is not None:
            return found
        if why != last:
            last = why
            program.launch.log(f'E leaderelection.go:347] error retrieving resource lock: Get "{config.server}": {why}')
        await asyncio.sleep(_PAUSE_SECONDS)
    return None


def _look(pod: PodHost, config: KubeconfigFile) -> tuple[WorkloadCluster | None, str]:
    host, port = config.endpoint
    try:
        service = pod.find(host, port)
    except OSError as error:
        return None, f"dial tcp {host}:{port}: {error.strerror or error}"
    if isinstance(service, Balancer):
        service = service.behind()  # type: ignore[assignment]
    if not isinstance(service, ApiService):
        return None, f"dial tcp {host}:{port}: connect: connection refused"
    pki = service.cluster.pki
    if pki.issuer.certificate not in config.authorities:
        return None, "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if config.client is not None and not signed_by(config.client, [pki.issuer.certificate]):
        return None, "Unauthorized"
    return service.cluster, ""


async def run_konnectivity(pod: PodHost, program: Program, inside: ContainerHandle) -> None:
    """A tunnel that carries nothing: simulated API servers reach Pods without it."""
    for name in ("cluster-cert", "cluster-key", "kubeconfig"):
        program.file(name, required=False)
    opened: dict[int, Service] = {
        program.number("agent-port", 8132): TunnelPort(),
        program.number("health-port", 8134): HealthPort(),
    }
    try:
        for port, service in opened.items():
            await listen(pod, port, service)
        inside.ready()
        await inside.stopping.wait()
    finally:
        for port in opened:
            await pod.unlisten(port)


async def run_kine(pod: PodHost, program: Program, inside: ContainerHandle) -> None:
    """In front of a database that is not simulated: its name, without the password, tells the datastores apart."""
    endpoint = program.flag("endpoint")
    if not endpoint:
        raise ProgramError("building kine: --endpoint is required")
    for name in ("ca-file", "cert-file", "key-file"):
        program.file(name, required=False)
    scheme, _, rest = endpoint.partition("://")
    port = KinePort(f"kine:{scheme}://{rest.rpartition('@')[2]}".replace(" ", "_"))
    address = program.flag("listen-address", "tcp://0.0.0.0:2379")
    path = address.removeprefix("unix://").strip("/")
    if address.startswith("unix://"):
        pod.sockets[path] = port
    number = 0 if address.startswith("unix://") else urlsplit(address).port or 2379
    if number:
        pod.host.listen(number, port)
    try:
        inside.ready()
        await inside.stopping.wait()
    finally:
        pod.sockets.pop(path, None)
        if number:
            pod.host.unlisten(number)
