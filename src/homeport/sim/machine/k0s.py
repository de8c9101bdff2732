"""k0s on a simulated machine: `k0s install`, and what starting its service then does."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource
from homeport.apiserver.auth.serviceaccount import decoded
from homeport.apiserver.auth.source import read
from homeport.sim.machine import yaml
from homeport.sim.machine.flag import parse_flags
from homeport.sim.machine.kubeadm.config import KubeadmError, Registering
from homeport.sim.machine.kubeadm.discovery import Discovery, authenticate, discover, read_kubeconfig, require
from homeport.sim.machine.kubeadm.init import await_endpoint, check_kubelet, register, registration_of, start_cluster
from homeport.sim.machine.kubeadm.pki import prepare
from homeport.sim.machine.shell import Invocation, Program, Ran
from homeport.sim.machine.userdata import gunzip
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload import addon
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.kind import CLUSTER_ROLE_BINDING, DAEMON_SET, SERVICE_ACCOUNT, Json
from homeport.sim.machine.workload.node import CONTROL_PLANE
from homeport.sim.machine.workload.vip import VipConfig
from homeport.sim.network.address import normal

PKI = "/var/lib/k0s/pki"
JOIN_PORT = 9443
_SERVICES = ("k0scontroller", "k0sworker")


@dataclass(slots=True)
class K0s:
    """The program and the service that it installs."""

    machine: Machine
    joined: Callable[[Machine], Awaitable[None]]
    role: str = ""
    flags: dict[str, str] = field(default_factory=dict)
    started: bool = False

    def programs(self) -> dict[str, Program]:
        return {"k0s": self.run, "k0s-get": self.get}

    async def get(self, call: Invocation) -> Ran:
        """What the script of get.k0s.sh does."""
        self.machine.k0s = (call.env.get("K0S_VERSION") or self.machine.k0s or "v1.32.2+k0s.0").removeprefix("v")
        return Ran(0, f"Downloading k0s v{self.machine.k0s}\nk0s is now executable in /usr/local/bin\n")

    async def run(self, call: Invocation) -> Ran:
        words, flags = parse_flags(call.args[1:])
        if not self.machine.k0s:
            return call.fail(f"sh: 1: {call.args[0]}: not found", 127)
        verb = words[0] if words else ""
        if verb == "version":
            return Ran(0, f"v{self.machine.k0s}\n")
        if verb == "install" and len(words) > 1:
            self.role, self.flags = words[1], flags
            return Ran() if self.role in ("controller", "worker") else call.fail(f'Error: unknown command "{words[1]}"')
        if verb == "start":
            return Ran(0 if await self.start() else 1)
        return Ran()

    async def start(self) -> bool:
        """The service runs from here on whatever comes of it; what goes wrong stands in its log."""
        if self.started or not self.role:
            return bool(self.role)
        self.started = True
        try:
            if self.role == "worker":
                await run_worker(self.machine, self.flags)
            elif self.flags.get("token-file"):
                await _join_controller(self.machine, self.flags)
            else:
                await run_controller(self.machine, self.flags)
        except KubeadmError as error:
            self.machine.console.say(f"k0s{self.role}: Error: {error}")
            return True
        await self.joined(self.machine)
        return True

    def is_service(self, name: str) -> bool:
        return name.removesuffix(".service") in _SERVICES


async def run_controller(machine: Machine, flags: dict[str, str]) -> None:
    """A first controller."""
    facts, vip = _read_config(machine, flags)
    given = prepare(machine.disk, machine.clock, PKI, make=True, external_etcd=facts.external_etcd)
    await machine.pace.take(machine.pace.kubeadm)
    cluster = await start_cluster(machine, facts, given)
    if not facts.external_etcd:
        cluster.etcd.bootstrap(machine.hostname.lower(), machine.address)
    cluster.add_control_plane(_plane(machine, vip))
    await await_endpoint(machine, cluster, machine.pace.patience)
    await cluster.put(_objects(facts), "k0s")
    cluster.initialized = True
    await _announce(machine, cluster)
    await _maybe_worker(machine, cluster, flags)


async def _join_controller(machine: Machine, flags: dict[str, str]) -> None:
    facts, vip = _read_config(machine, flags)
    cluster = await discover(machine, _token(machine, flags["token-file"]), machine.pace.patience)
    wanted = _token(machine, flags["token-file"])
    authenticate(cluster, wanted.token)
    identity = wanted.token.partition(".")[0]
    secret = read(cluster.server.store, "secrets", "kube-system", f"bootstrap-token-{identity}") or {}
    if decoded(secret, "usage-controller-join") != "true":
        raise KubeadmError("failed to join as a controller: 401 Unauthorized: the token is not for controllers")
    if facts.external_etcd:
        raise KubeadmError("can't join a controller to a cluster whose storage is not etcd")
    name = machine.hostname.lower()
    try:
        cluster.etcd.add(name, machine.address)
        cluster.add_control_plane(_plane(machine, vip))
        cluster.etcd.promote(name)
    except EtcdError as refused:
        raise KubeadmError(f"failed to join the etcd cluster: {refused}") from refused
    machine.cluster = cluster
    cluster.refresh()
    await _announce(machine, cluster)
    await _maybe_worker(machine, cluster, flags)


async def _announce(machine: Machine, cluster: WorkloadCluster) -> None:
    if cluster.k0s is not None:
        await cluster.k0s.announce(machine.hostname.lower(), machine.address, f"v{machine.k0s}")


async def run_worker(machine: Machine, flags: dict[str, str]) -> None:
    path = flags.get("token-file", "")
    if not path:
        raise KubeadmError(
            "normal kubelet kubeconfig does not exist and no join-token given. dunno how to make kubelet auth to api"
        )
    wanted = _token(machine, path)
    cluster = await discover(machine, wanted, machine.pace.patience)
    user = authenticate(cluster, wanted.token)
    require(cluster, user, "create", "certificatesigningrequests", group="certificates.k8s.io")
    await _worker(machine, cluster, flags, control_plane=False)


async def _maybe_worker(machine: Machine, cluster: WorkloadCluster, flags: dict[str, str]) -> None:
    if flags.get("enable-worker") == "true" or flags.get("single") == "true":
        await _worker(machine, cluster, flags, control_plane=True)


async def _worker(machine: Machine, cluster: WorkloadCluster, flags: dict[str, str], *, control_plane: bool) -> None:
    arguments = _kubelet_arguments(flags.get("kubelet-extra-args", ""))
    bare = flags.get("no-taints") == "true" or flags.get("single") == "true"
    name = arguments.get("hostname-override") or machine.hostname.lower()
    tainted = control_plane and not bare
    taints: list[Json] | None = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if tainted else []
    registering = Registering(name=name, taints=taints, arguments=arguments)
    machine.installed = machine.k0s.partition("+")[0]
    registration = registration_of(machine, registering, cluster.facts, control_plane=control_plane)
    registration.version = f"v{machine.k0s}"
    if control_plane:
        registration.labels["node.k0sproject.io/role"] = "control-plane"
    for pair in filter(None, flags.get("labels", "").split(",")):
        key, _, value = pair.partition("=")
        registration.labels[key] = value
    check_kubelet(machine, registration)
    await register(machine, cluster, registration)


def _kubelet_arguments(text: str) -> dict[str, str]:
    return parse_flags(text.split())[1]


def _plane(machine: Machine, vip: VipConfig | None) -> ControlPlane:
    return ControlPlane(machine, machine.hostname.lower(), machine.address, 6443, vip, (JOIN_PORT, 8132))


def _token(machine: Machine, path: str) -> Discovery:
    """A join token: a kubeconfig under gzip and base64."""
    content = machine.disk.text(path)
    if content is None:
        raise KubeadmError(f"failed to read join token: open {path}: no such file or directory")
    try:
        text = gunzip(base64.b64decode(content.strip(), validate=True)).decode()
    except (binascii.Error, ValueError) as broken:
        raise KubeadmError(f"failed to decode token from {path}: {broken}") from broken
    found = read_kubeconfig(text)
    if not found.authority or not found.token:
        raise KubeadmError(f"the join token in {path} has no authority or no token")
    return found


def _read_config(machine: Machine, flags: dict[str, str]) -> tuple[Facts, VipConfig | None]:
    path = flags.get("config", "")
    text = machine.disk.text(path) if path else ""
    if text is None:
        raise KubeadmError(f"failed to read config: open {path}: no such file or directory")
    try:
        config = yaml.load(text) or {}
        spec: dict[str, Any] = config.get("spec") or {}
    except (yaml.YAMLError, AttributeError) as broken:
        raise KubeadmError(f"failed to read config {path}: {' '.join(str(broken).split())}") from broken
    api, network, storage = spec.get("api") or {}, spec.get("network") or {}, spec.get("storage") or {}
    host = normal(str(api.get("externalAddress") or api.get("address") or machine.address))
    version = f"v{machine.k0s}" if machine.k0s[:1].isdigit() else "v1.32.2+k0s.0"
    facts = Facts(
        name=str((config.get("metadata") or {}).get("name") or "k0s"),
        version=version.partition("+")[0],
        endpoint=(host, int(api.get("port") or 6443)),
        flavour="k0s",
        service_subnet=str(network.get("serviceCIDR") or "10.96.0.0/12"),
        pod_subnet=str(network.get("podCIDR") or "10.244.0.0/16"),
        dns_domain=str(network.get("clusterDomain") or "cluster.local"),
        cert_sans=tuple(str(each) for each in api.get("sans") or ()),
        external_etcd=str(storage.get("type") or "etcd") != "etcd"
        or bool((storage.get("etcd") or {}).get("externalCluster")),
        configuration={"dns": {}, "proxy": {"disabled": bool((network.get("kubeProxy") or {}).get("disabled"))}},
    )
    return facts, _read_vip(network)


def _read_vip(network: dict[str, Any]) -> VipConfig | None:
    """k0s' own load balancing of the control plane."""
    balancing = network.get("controlPlaneLoadBalancing") or {}
    if not balancing.get("enabled"):
        return None
    for instance in (balancing.get("keepalived") or {}).get("vrrpInstances") or ():
        for address in instance.get("virtualIPs") or ():
            return VipConfig(normal(str(address).partition("/")[0]), lease_seconds=3.0)
    return None


def _objects(facts: Facts) -> Iterator[tuple[Json, Resource]]:
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"}
    for name, role in (
        ("kubelet-bootstrap", "system:node-bootstrapper"),
        ("node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
    ):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        yield {"metadata": {"name": name}, "roleRef": reference, "subjects": [group]}, CLUSTER_ROLE_BINDING
    yield from addon.coredns(facts)
    yield from addon.kube_proxy(facts)
    labels = {"k8s-app": "kube-router"}
    yield {"metadata": {"name": "kube-router", "namespace": "kube-system"}}, SERVICE_ACCOUNT
    container = {"name": "kube-router", "image": "quay.io/k0sproject/kube-router:v2.4.1-iptables1.8.9-0"}
    pod = {"hostNetwork": True, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    yield {"metadata": {"name": "kube-router", "namespace": "kube-system", "labels": labels}, "spec": spec}, DAEMON_SET
