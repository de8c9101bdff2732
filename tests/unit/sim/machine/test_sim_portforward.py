from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.capi.remote.grpc import Channel
from homeport.capi.remote.tunnel import Tunnel
from homeport.client.errors import BadRequest, Forbidden, NotFound, Unavailable
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import merge, parse, resolve
from homeport.client.portforward import ForwardError
from homeport.client.protocol import Key, MergePatch
from homeport.client.wire.retry import Retry
from homeport.controlplane.kubeadm.etcd.client import EtcdClient
from homeport.runtime.clock import SystemClock
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.kind import POD
from homeport.sim.machine.workload.trust.authority import now_of
from homeport.sim.network import Network, Proxy
from unit.sim.machine.sim_kit import PACE, Secrets, Sim, join_data

ETCD = Key("kube-system", "etcd-cp-0")


@contextlib.asynccontextmanager
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


async def settled(sim: Sim, key: Key) -> None:
    async with asyncio.timeout(20):
        while ((await sim.cluster.client().get(POD, key)).get("status") or {}).get("phase") != "Running":  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def client(sim: Sim, user: str = "admin", groups: tuple[str, ...] = ("system:masters",), proxy: str = "") -> HttpClient:
    server = sim.cluster.facts.server if proxy else sim.cluster.server.url
    text = sim.cluster.pki.client_kubeconfig(server, user, groups, proxy)
    config = resolve(merge([parse(text, Path("test"))]))
    return HttpClient(config if proxy else replace(config, server_name="127.0.0.1"), retry=Retry(attempts=1))


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


async def test_ports_are_forwarded_from_behind_a_proxy(tmp_path: Path) -> None:
    """The address of the cluster exists in the simulated network alone; the way there is its proxy."""
    async with running() as sim:
        proxy = Proxy(sim.network)
        await proxy.start()
        try:
            async with client(sim, proxy=proxy.url()) as api:
                assert await member_names(api, etcd_tls(sim, tmp_path)) == ["cp-0"]
        finally:
            await proxy.close()


async def failure(api: HttpClient, key: Key, port: int) -> str:
    async with await api.port_forward(key, port) as stream:
        with pytest.raises(ForwardError) as caught:
            await stream.read()
        assert await stream.read() == b""
    return str(caught.value)


async def test_what_can_not_be_reached_is_said_on_the_stream() -> None:
    async with running() as sim, client(sim) as api:
        told = await failure(api, ETCD, 4711)
        assert told.startswith(
            "port 4711 of pod kube-system/etcd-cp-0: error forwarding port 4711 to pod etcd-cp-0, uid "
        )
        assert told.endswith("connection refused: 10.0.0.11 port 4711")

        await sim.boot("worker", join_data(sim.secrets))
        pods = (await sim.cluster.client().list(POD)).items
        proxy = next(pod for pod in pods if pod["spec"].get("nodeName") == "worker")
        key = Key("kube-system", proxy["metadata"]["name"])
        await settled(sim, key)
        sim.network.partition("cut", ["worker"])
        assert "i/o timeout: the kubelet of node worker does not answer" in await failure(api, key, 10256)
        sim.network.heal("cut")
        sim.power_off("worker")
        assert "i/o timeout: the kubelet of node worker does not answer" in await failure(api, key, 10256)


async def test_only_pods_that_run_have_ports() -> None:
    async with running() as sim, client(sim) as api:
        await sim.cluster.client().patch(POD, ETCD, MergePatch({"status": {"phase": "Failed"}}), subresource="status")
        assert (await failure(api, ETCD, 2379)).endswith("pod is not running: its phase is Failed")


async def test_pods_with_a_network_of_their_own_listen_nowhere() -> None:
    async with running() as sim, client(sim) as api:
        spec = {"nodeName": "cp-0", "containers": [{"name": "c", "image": "i"}]}
        await sim.cluster.client().create({"metadata": {"name": "own", "namespace": "default"}, "spec": spec}, kind=POD)
        key = Key("default", "own")
        await settled(sim, key)
        assert "connection refused: 10.244." in await failure(api, key, 2379)


async def test_a_machine_that_dies_breaks_its_connections(tmp_path: Path) -> None:
    async with running() as sim, client(sim) as api:
        await sim.boot("cp-1", join_data(sim.secrets, control_plane=True))
        await sim.boot("cp-2", join_data(sim.secrets, control_plane=True))
        await settled(sim, Key("kube-system", "etcd-cp-1"))
        async with await api.port_forward(Key("kube-system", "etcd-cp-1"), 2379) as stream:
            await stream.write(b"\x16\x03\x01")  # the beginning of a handshake
            sim.power_off("cp-1")
            async with asyncio.timeout(5):
                with contextlib.suppress(ForwardError):
                    assert await stream.read() == b""


async def test_refusals_are_errors_of_the_api() -> None:
    async with running() as sim, client(sim) as api, client(sim, "nobody", ()) as nobody:
        with pytest.raises(NotFound, match='pods "gone" not found'):
            await api.port_forward(Key("kube-system", "gone"), 2379)
        with pytest.raises(BadRequest, match="'70000' is not a valid port"):
            await api.port_forward(ETCD, 70000)
        with pytest.raises(Forbidden, match='cannot get resource "pods/portforward"'):
            await nobody.port_forward(ETCD, 2379)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with running() as sim:
        api = client(sim)
        await sim.fleet.close()
        with pytest.raises(Unavailable, match="no connection to https://"):
            await api.port_forward(ETCD, 2379)
        await api.close()
        with pytest.raises(Unavailable, match="is closed"):
            await api.port_forward(ETCD, 2379)


async def test_a_server_that_goes_away_breaks_the_stream() -> None:
    async with running() as sim, client(sim) as api:
        stream = await api.port_forward(ETCD, 2379)
        closing = asyncio.create_task(sim.fleet.close())
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                while await stream.read():
                    pass
        await closing
        await stream.close()
        with pytest.raises(ConnectionError, match="closed"):
            await stream.write(b"x")
