"""A simulation for tests: machines with user data as a bootstrap provider writes it."""

from __future__ import annotations

import base64
import datetime
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from homeport.apiserver.auth import certificate as certs
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.clock import Clock, LoopClock
from homeport.sim.engine import guest
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import NODE
from homeport.sim.machine.workload.object import bootstrap_token
from homeport.sim.machine.workload.trust.authority import spki_hash
from homeport.sim.network import Network

VIP = "10.0.0.100"
TOKEN = "abcdef.0123456789abcdef"
IMAGE = "ubuntu-22.04-kube-v1.30.2"
PACE = Pace(poll=1.0, patience=20.0)


@dataclass(slots=True)
class Pair:
    certificate: bytes
    key: bytes

    @property
    def hash(self) -> str:
        from cryptography import x509

        return spki_hash(x509.load_pem_x509_certificate(self.certificate))


def make_pair(clock: Clock, days: int = 3650) -> Pair:
    key = certs.make_key()
    now = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC)
    return Pair(certs.certificate_pem(certs.sign_ca(key, now, days=days)), certs.key_pem(key))


@dataclass(slots=True)
class Secrets:
    """What a control plane provider makes for a cluster."""

    ca: Pair
    etcd: Pair
    proxy: Pair
    sa: bytes

    @classmethod
    def make(cls, clock: Clock) -> Secrets:
        return cls(make_pair(clock), make_pair(clock), make_pair(clock), certs.key_pem(certs.make_key()))

    def files(self) -> list[dict[str, Any]]:
        folder = "/etc/kubernetes/pki"
        found = [(f"{folder}/sa.key", self.sa)]
        for name, pair in (("ca", self.ca), ("etcd/ca", self.etcd), ("front-proxy-ca", self.proxy)):
            found += [(f"{folder}/{name}.crt", pair.certificate), (f"{folder}/{name}.key", pair.key)]
        return [
            {"path": path, "owner": "root:root", "permissions": "0600", "content": text.decode()}
            for path, text in found
        ]


def kube_vip(address: str = VIP, conf: str = "super-admin") -> dict[str, Any]:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-vip", "namespace": "kube-system"},
        "spec": {
            "containers": [
                {
                    "name": "kube-vip",
                    "image": "ghcr.io/kube-vip/kube-vip:v0.9.2",
                    "env": [
                        {"name": "address", "value": address},
                        {"name": "port", "value": "6443"},
                        {"name": "cp_enable", "value": "true"},
                        {"name": "vip_leaseduration", "value": "15"},
                    ],
                }
            ],
            "hostNetwork": True,
            "volumes": [{"name": "kubeconfig", "hostPath": {"path": f"/etc/kubernetes/{conf}.conf"}}],
        },
    }
    return {"path": "/etc/kubernetes/manifests/kube-vip.yaml", "content": yaml.safe_dump(manifest)}


def cloud_config(files: list[dict[str, Any]], *commands: str) -> bytes:
    body = {"write_files": files, "runcmd": list(commands)}
    return ("## template: jinja\n#cloud-config\n" + yaml.safe_dump(body, width=10**9)).encode()


def node_registration(args: Mapping[str, str] = {}, **more: Any) -> dict[str, Any]:
    return {"name": "{{ ds.meta_data.hostname }}", "kubeletExtraArgs": dict(args), **more}


def init_data(
    secrets: Secrets,
    *,
    vip: dict[str, Any] | None = None,
    version: str = "v1.30.2",
    endpoint: str = f"{VIP}:6443",
    args: Mapping[str, str] = {},
    api: str = "v1beta3",
    cluster: Mapping[str, Any] = {},
    pre: tuple[str, ...] = (),
) -> bytes:
    documents = [
        {
            "apiVersion": f"kubeadm.k8s.io/{api}",
            "kind": "ClusterConfiguration",
            "clusterName": "demo",
            "kubernetesVersion": version,
            "controlPlaneEndpoint": endpoint,
            "networking": {"podSubnet": "172.20.0.0/16", "serviceSubnet": "172.19.0.0/16"},
            **cluster,
        },
        {
            "apiVersion": f"kubeadm.k8s.io/{api}",
            "kind": "InitConfiguration",
            "nodeRegistration": node_registration(args),
        },
    ]
    config = {"path": "/run/kubeadm/kubeadm.yaml", "content": yaml.safe_dump_all(documents, width=10**9)}
    files = [*secrets.files(), vip if vip is not None else kube_vip(), config]
    return cloud_config(
        files,
        *pre,
        "kubeadm init --config /run/kubeadm/kubeadm.yaml -v 2 && echo success > /run/cluster-api/bootstrap-success.complete",
    )


def join_data(
    secrets: Secrets,
    *,
    control_plane: bool = False,
    token: str = TOKEN,
    hashes: list[str] | None = None,
    endpoint: str = f"{VIP}:6443",
    args: Mapping[str, str] = {},
    files: list[dict[str, Any]] | None = None,
    **registration: Any,
) -> bytes:
    discovery = {
        "bootstrapToken": {
            "apiServerEndpoint": endpoint,
            "token": token,
            "caCertHashes": [secrets.ca.hash] if hashes is None else hashes,
        }
    }
    document: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta3",
        "kind": "JoinConfiguration",
        "discovery": discovery,
        "nodeRegistration": node_registration(args, **registration),
    }
    given = []
    if control_plane:
        document["controlPlane"] = {}
        given = [*(secrets.files() if files is None else files), kube_vip(conf="admin")]
    given.append({"path": "/run/kubeadm/kubeadm-join-config.yaml", "content": yaml.safe_dump(document, width=10**9)})
    return cloud_config(
        given,
        "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml && echo success > /run/cluster-api/bootstrap-success.complete",
    )


@dataclass(slots=True)
class Sim:
    network: Network
    fleet: Fleet
    clock: Clock
    secrets: Secrets
    _next: int = 10
    _ids: dict[str, str] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)

    def power_on(
        self,
        name: str,
        data: bytes = b"",
        *,
        image: str = IMAGE,
        image_type: str = "DISK_IMAGE",
        address: str | None = None,
        vcpus: int = 4,
        memory_gib: int = 8,
        again: bool = False,
        **more: Any,
    ) -> None:
        if not again:
            self._next += 1
            self._ids[name] = f"{self._next:08d}-0000-0000-0000-000000000000"
            self._addresses[name] = f"10.0.0.{self._next}"
        given = self._addresses[name] if address is None else address
        meta = yaml.safe_dump({"hostname": name, "uuid": self._ids[name]}).encode()
        self.fleet.powered_on(
            guest.Machine(
                ext_id=self._ids[name],
                name=name,
                cluster="pe",
                image=image,
                image_type=image_type,
                vcpus=vcpus,
                memory_bytes=memory_gib * 1024**3,
                user_data=data,
                meta_data=meta,
                addresses=(given,) if given else (),
                **more,
            )
        )

    async def boot(self, name: str, data: bytes = b"", **more: Any) -> str:
        """Powers a machine on and waits until it has done what it can; gives its console."""
        self.power_on(name, data, **more)
        await self.fleet.settled()
        return self.console(name)

    def power_off(self, name: str) -> None:
        self.fleet.powered_off(self._ids[name], crashed=True)

    def remove(self, name: str) -> None:
        self.fleet.removed(self._ids[name])

    def console(self, name: str) -> str:
        return self.fleet.console(self._ids[name])

    def id(self, name: str) -> str:
        return self._ids[name]

    @property
    def cluster(self) -> WorkloadCluster:
        return self.fleet.clusters()[0]

    async def cluster_up(self, **more: Any) -> WorkloadCluster:
        console = await self.boot("cp-0", init_data(self.secrets, **more))
        assert "initialized successfully" in console, console
        await self.add_token()
        return self.cluster

    async def add_token(self, token: str = TOKEN, ttl: str = "15m") -> None:
        await self.cluster.put([bootstrap_token({"token": token, "ttl": ttl}, self.clock.now())])

    async def node(self, name: str) -> Any:
        try:
            return await self.cluster.client().get(NODE, Key("", name))
        except NotFound:
            return None


@asynccontextmanager
async def simulation(pace: Pace = PACE, **more: Any) -> AsyncIterator[Sim]:
    clock = LoopClock()
    network = Network()
    fleet = Fleet(network, clock, pace=pace, **more)
    try:
        yield Sim(network, fleet, clock, Secrets.make(clock))
    finally:
        await fleet.close()


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
