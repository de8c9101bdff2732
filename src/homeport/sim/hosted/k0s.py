"""k0s in a Pod: `k0s controller`, a whole control plane in one container."""

from __future__ import annotations

import re
from typing import Any

from homeport.client.errors import ApiError
from homeport.runtime.workload.coroutine import ContainerHandle
from homeport.sim.hosted.apiserver import first, listen, version_of
from homeport.sim.hosted.cluster import HostedClusters, ServerFiles
from homeport.sim.hosted.configuration import configured
from homeport.sim.hosted.pod import PodHost, find_volume
from homeport.sim.hosted.program import Program, ProgramError
from homeport.sim.hosted.storage import Storage, connect
from homeport.sim.machine import yaml
from homeport.sim.machine.k0s.config import JOIN_PORT, TUNNEL_PORT, read_facts
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.controller import EVERYTHING, KUBELET
from homeport.sim.machine.workload.k0s.apply import UnknownKind, apply
from homeport.sim.machine.workload.k0s.object import k0s_objects
from homeport.sim.machine.workload.k0s.tunnel import TunnelPort
from homeport.sim.machine.workload.trust.authority import CertificateProblem, load_authority, load_key

_DATA = "/var/lib/k0s"
_PREFIX = "/registry"
_FILLED = re.compile(r'^sed "s\|(\w+)\|\$\w+\|g" (\S+) > (\S+)$', re.M)


async def run_k0s(clusters: HostedClusters, pod: PodHost, program: Program, inside: ContainerHandle) -> None:
    """Until it is stopped, or its data are deleted. Raises ProgramError."""
    config_path = program.flag("config", "/etc/k0s/k0s.yaml")
    text = _written(program, config_path)
    if text is None:
        text = program.read(config_path).decode() if program.flag("config") or program.has(config_path) else ""
    version = version_of(program).partition("-k0s")[0]
    try:
        facts, _ = read_facts(text, config_path, pod.address, version)
    except KubeadmError as error:
        raise ProgramError(str(error)) from error
    spec: dict[str, Any] = (yaml.load(text) or {}).get("spec") or {}
    facts.external_etcd = True  # whether it is or not, the data are in the Pod's volumes
    storage = await _storage(clusters, pod, program, spec)
    cluster = await clusters.open(storage, facts, _files(clusters, program))
    if cluster.pki.add_hosts([*facts.cert_sans, facts.endpoint[0], pod.address]):
        cluster.server.reload_certificate()
    node, port = f"{pod.namespace}/{pod.name}", int((spec.get("api") or {}).get("port") or 6443)
    join_port = int((spec.get("api") or {}).get("k0sApiPort") or JOIN_PORT)
    tunnel = int((spec.get("konnectivity") or {}).get("agentPort") or TUNNEL_PORT)
    roles = EVERYTHING - {KUBELET}
    plane = ControlPlane(pod, node, pod.address, port, more_ports=(join_port,), version=version)
    cluster.add_control_plane(plane)
    try:
        assert cluster.service is not None
        await listen(pod, port, cluster.service)
        await listen(pod, join_port, cluster.service)
        await listen(pod, tunnel, TunnelPort())
        clusters.join(cluster, roles)
        await _prepare(cluster, program)
        inside.ready()
        async with configured(cluster, pod, program, yaml.load(text) or {}, version_of(program)):
            await first(inside.stopping, clusters.lost(cluster))
    finally:
        cluster.drop_control_plane(node)
        for each in (port, join_port, tunnel):
            await pod.unlisten(each)
        clusters.leave(cluster, roles)
    if not inside.stopping.is_set():
        raise ProgramError("the storage was deleted")


def _written(program: Program, path: str) -> str | None:
    """A file that the container's own script makes of another one, with the value of a variable in it."""
    command = program.launch.command
    script = program.launch.files.get(command[1], b"").decode() if len(command) > 1 else ""
    for placeholder, source, target in _FILLED.findall(script):
        if target == path:
            value = program.launch.env.get(placeholder.strip("_"), "")
            return program.read(source).decode().replace(placeholder, value)
    return None


async def _storage(clusters: HostedClusters, pod: PodHost, program: Program, spec: dict[str, Any]) -> Storage:
    storage = spec.get("storage") or {}
    external = (storage.get("etcd") or {}).get("externalCluster") or {}
    if external:
        given = {
            "etcd-servers": ",".join(external.get("endpoints") or ()),
            "etcd-prefix": str(external.get("etcdPrefix") or _PREFIX),
            "etcd-cafile": external.get("caFile"),
            "etcd-certfile": external.get("clientCertFile"),
            "etcd-keyfile": external.get("clientKeyFile"),
        }
        flags = {name: str(value) for name, value in given.items() if value}
        return await connect(pod, program.with_flags(flags), clusters.clock)
    source = str((storage.get("kine") or {}).get("dataSource") or "")
    if source and not source.startswith("sqlite"):
        scheme, _, rest = source.partition("://")
        return Storage(f"kine:{scheme}://{rest.rpartition('@')[2]}".replace(" ", "_"), _PREFIX, None)
    return clusters.local_storage(*find_volume(pod, program.launch, program.flag("data-dir", _DATA)), _PREFIX)


def _files(clusters: HostedClusters, program: Program) -> ServerFiles | None:
    """Certificates of the cluster, if they are given. Otherwise k0s makes them at its first start."""
    pki = f"{program.flag('data-dir', _DATA)}/pki"
    if not program.has(f"{pki}/ca.crt"):
        return None
    try:
        authority = load_authority("ca", program.read(f"{pki}/ca.crt"), program.read(f"{pki}/ca.key"), clusters.clock)
        signing_key = load_key("sa", program.read(f"{pki}/sa.key"))
    except CertificateProblem as problem:
        raise ProgramError(str(problem)) from problem
    return ServerFiles(authority.issuer, authority.pem, b"", signing_key)


async def _prepare(cluster: WorkloadCluster, program: Program) -> None:
    """What k0s applies: its own objects, and the manifests of its folders."""
    await cluster.put(k0s_objects(cluster.facts), "k0s")
    for path in program.under(f"{_DATA}/manifests"):
        try:
            found = [each for each in yaml.load_all(program.read(path).decode()) if isinstance(each, dict)]
        except yaml.YAMLError as broken:
            program.launch.log(f"failed to apply manifests from {path}: {' '.join(str(broken).split())}")
            continue
        for obj in found:
            try:
                await apply(cluster, obj)
            except (UnknownKind, ApiError) as problem:
                program.launch.log(f"failed to apply {path}: {problem}")
