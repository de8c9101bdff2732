"""kube-apiserver in a Pod: one more server of the cluster that its datastore holds."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

from homeport.apiserver.auth import certificate as certs
from homeport.runtime.workload.coroutine import ContainerHandle
from homeport.sim.hosted.cluster import HostedClusters, ServerFiles
from homeport.sim.hosted.pod import PodHost
from homeport.sim.hosted.program import Program, ProgramError, parse_bundle, parse_key
from homeport.sim.hosted.storage import connect
from homeport.sim.machine.workload.cluster import ControlPlane
from homeport.sim.machine.workload.facts import Facts, parse_version
from homeport.sim.network import Service

_DEFAULT_SERVICES = "10.0.0.0/24"
# What the real program reads at its start, besides those that are used here.
_FILES = (
    "proxy-client-cert-file", "proxy-client-key-file", "requestheader-client-ca-file", "kubelet-client-certificate",
    "kubelet-client-key", "egress-selector-config-file", "admission-control-config-file", "audit-policy-file",
    "encryption-provider-config", "authentication-config", "authorization-config",
)  # fmt: skip


async def run_apiserver(clusters: HostedClusters, pod: PodHost, program: Program, inside: ContainerHandle) -> None:
    """Until it is stopped, or its data are deleted. Raises ProgramError."""
    version = version_of(program)
    program.launch.log(f"I server.go:142] Version: {version}")
    port = program.number("secure-port", 6443)
    given = read_certificates(program)
    services = check_services(program)
    storage = await connect(pod, program, clusters.clock)
    advertised = program.flag("advertise-address") or pod.address
    facts = Facts(pod.name, version, (advertised, port), service_subnet=services, external_etcd=True)
    cluster = await clusters.open(storage, facts, given)
    node = f"{pod.namespace}/{pod.name}"
    cluster.add_control_plane(ControlPlane(pod, node, pod.address, port, version=version))
    try:
        assert cluster.service is not None
        await listen(pod, port, cluster.service)
        clusters.settle(cluster)
        program.launch.log(f"I secure_serving.go:213] Serving securely on [::]:{port}")
        inside.ready()
        await first(inside.stopping, clusters.lost(cluster))
    finally:
        cluster.drop_control_plane(node)
        await pod.unlisten(port)
        clusters.settle(cluster)
    if not inside.stopping.is_set():
        raise ProgramError("the storage was deleted: etcdserver: mvcc: required revision has been compacted")


async def listen(pod: PodHost, port: int, service: Service) -> None:
    try:
        await pod.listen(port, service)
    except OSError as error:
        raise ProgramError(
            f"failed to create listener: failed to listen on 0.0.0.0:{port}: bind: {error.strerror or error}"
        ) from error


async def first(*events: asyncio.Event) -> None:
    """Returns when one of them is set."""
    tasks = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def version_of(program: Program) -> str:
    image = str(program.launch.container.get("image", ""))
    tag = image.partition("@")[0].rpartition(":")[2]
    try:
        parse_version(tag)
    except ValueError as wrong:
        raise ProgramError(f"image {image!r}: its tag is not a version: expected for example v1.33.1") from wrong
    return "v" + tag.removeprefix("v").partition("+")[0].partition("_")[0]


def read_certificates(program: Program) -> ServerFiles:
    """As the real program loads them. Raises ProgramError."""
    _, key = program.pair("tls-cert-file", "tls-private-key-file")
    clients = program.file("client-ca-file")
    authorities = parse_bundle(clients, program.flag("client-ca-file"))
    if not program.flag("service-account-issuer"):
        raise ProgramError("service-account-issuer is a required flag")
    program.file("service-account-key-file")
    signing = "service-account-signing-key-file"
    signing_key = parse_key(program.file(signing), program.flag(signing))
    for name in _FILES:
        program.file(name, required=False)
    return ServerFiles(authorities[0], clients, certs.key_pem(key) + program.file("tls-cert-file"), signing_key)


def check_services(program: Program) -> str:
    text = program.flag("service-cluster-ip-range", _DEFAULT_SERVICES)
    try:
        for each in text.split(","):
            ip_network(each.strip(), strict=False)
    except ValueError as wrong:
        raise ProgramError(f"error determining service IP ranges: invalid CIDR address: {text}") from wrong
    return text
