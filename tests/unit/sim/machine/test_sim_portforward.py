from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sim_kit import PACE, Secrets, Sim

from homeport.client.http import HttpClient
from homeport.client.kubeconfig import merge, parse, resolve
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.etcd.client import EtcdClient
from homeport.controlplane.kubeadm.etcd.grpc import Channel
from homeport.controlplane.kubeadm.etcd.tunnel import Tunnel
from homeport.runtime.clock import SystemClock
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.authority import now_of
from homeport.sim.machine.workload.kind import POD
from homeport.sim.network import Network

ETCD = Key("kube-system", "etcd-cp-0")


@asynccontextmanager
async def running() -> AsyncIterator[Sim]:
    """One control plane, in the time of the day: its server is asked over real connections."""
    clock, network = SystemClock(), Network()
    fleet = Fleet(network, clock, pace=PACE)
    sim = Sim(network, fleet, clock, Secrets.make(clock))
    try:
        await sim.cluster_up()
        await settled(sim, ETCD)
        yield sim
    finally:
        await fleet.close()


async def settled(sim: Sim, key: Key, phase: str = "Running") -> None:
    async with asyncio.timeout(20):
        while ((await sim.cluster.client().get(POD, key)).get("status") or {}).get("phase") != phase:
            await asyncio.sleep(0.02)


def client(sim: Sim, user: str = "admin", groups: tuple[str, ...] = ("system:masters",), proxy: str = "") -> HttpClient:
    server = sim.cluster.facts.server if proxy else sim.cluster.server.url
    text = sim.cluster.pki.client_kubeconfig(server, user, groups, proxy)
    return HttpClient(resolve(merge([parse(text, Path("test"))])))


def etcd_tls(sim: Sim, folder: Path) -> ssl.SSLContext:
    authority = sim.cluster.etcd_authority
    assert authority is not None
    identity = folder / "client.pem"
    identity.write_bytes(authority.issuer.client("kcp", (), now_of(sim.clock)()).pem)
    context = ssl.create_default_context(cadata=sim.secrets.etcd.certificate.decode())
    context.set_alpn_protocols(["h2"])
    context.load_cert_chain(identity)
    return context


async def member_names(api: HttpClient, tls: ssl.SSLContext) -> list[str]:
    stream = await api.port_forward(ETCD, 2379)
    tunnel = Tunnel(stream, tls, "cp-0")
    await tunnel.open()
    etcd = EtcdClient(Channel(tunnel, "cp-0"))
    try:
        return [member.name for member in await etcd.members()]
    finally:
        await etcd.close()


async def test_etcd_answers_through_a_forwarded_port(tmp_path: Path) -> None:
    async with running() as sim, client(sim) as api:
        assert await member_names(api, etcd_tls(sim, tmp_path)) == ["cp-0"]
