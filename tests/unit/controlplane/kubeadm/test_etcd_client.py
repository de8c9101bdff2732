from __future__ import annotations

import asyncio
import socket
import ssl
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from homeport.capi.remote.grpc import Channel, GrpcError, ProtocolError
from homeport.capi.remote.pki import generate
from homeport.capi.remote.tunnel import Tunnel, context_of
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.etcd.client import EtcdClient, MemberAlarm
from homeport.controlplane.kubeadm.etcd.inspector import Inspector
from homeport.runtime.clock import LoopClock, SystemClock
from homeport.runtime.testing import virtual
from homeport.sim.machine.etcdwire.member import EtcdService
from homeport.sim.machine.workload.etcd import Etcd
from homeport.sim.machine.workload.trust.authority import Authority, make_authority, now_of


@dataclass
class SocketStream:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read(self) -> bytes:
        return await self.reader.read(7)  # in small pieces: nothing may depend on where a frame is cut

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def close(self) -> None:
        self.writer.close()


class Store:
    revision = 41


@dataclass
class World:
    folder: Path
    down: set[str] = field(default_factory=set)
    clock: SystemClock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.authority = make_authority("etcd-ca", self.clock)
        self.etcd = Etcd(lambda name: name not in self.down, lambda a, b: True)
        self.etcd.bootstrap("cp-0", "10.0.0.1")
        for number in (1, 2):
            self.etcd.add(f"cp-{number}", f"10.0.0.{number + 1}")
            self.etcd.promote(f"cp-{number}")

    def identity(self, authority: Authority) -> ssl.SSLContext:
        path = self.folder / "client.pem"
        path.write_bytes(authority.issuer.client("homeport", (), now_of(self.clock)()).pem)
        return context_of(self.authority.pem, str(path))

    @asynccontextmanager
    async def client(self, node: str, context: ssl.SSLContext | None = None) -> AsyncIterator[EtcdClient]:
        service = EtcdService(self.etcd, node, Store(), self.authority, list, self.clock, lambda: None)
        ours, theirs = socket.socketpair()
        await service.accept(theirs, "test")
        stream = SocketStream(*await asyncio.open_connection(sock=ours))
        tunnel = Tunnel(stream, context or self.identity(self.authority), node)
        try:
            await tunnel.open()
            yield EtcdClient(Channel(tunnel, node))
        finally:
            await stream.close()
            served = [task for task in asyncio.all_tasks() if task.get_name() == f"etcd {node} for test"]
            await asyncio.gather(*served)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_members_status_and_leader_are_read(world: World) -> None:
    async with world.client("cp-1") as client:
        members = await client.members()
        assert [member.name for member in members] == ["cp-0", "cp-1", "cp-2"]
        assert members[0].peer_urls == ("https://10.0.0.1:2380",)
        assert not any(member.learner for member in members)
        status = await client.status()
        assert (status.leader, status.member) == (members[0].id, members[1].id)
        assert status.errors == ()


async def test_the_leader_moves_and_a_member_goes(world: World) -> None:
    ids = {member.name: member.id for member in world.etcd.members.values()}
    async with world.client("cp-2") as client:
        with pytest.raises(GrpcError, match="not leader"):
            await client.move_leader(ids["cp-2"])
    async with world.client("cp-0") as client:
        await client.move_leader(ids["cp-2"])
        assert (await client.status()).leader == ids["cp-2"]
    async with world.client("cp-2") as client:
        assert [member.name for member in await client.remove_member(ids["cp-0"])] == ["cp-1", "cp-2"]
        with pytest.raises(GrpcError, match="member not found") as caught:
            await client.remove_member(ids["cp-0"])
        assert caught.value.code == 5


async def test_alarms_are_read_and_disarmed(world: World) -> None:
    member = world.etcd.members["cp-1"].id
    world.etcd.alarms.add((member, "NOSPACE"))
    async with world.client("cp-0") as client:
        assert await client.alarms() == [MemberAlarm(member, "NOSPACE")]
        await client.disarm(MemberAlarm(member, "NOSPACE"))
        assert await client.alarms() == []


async def test_without_quorum_the_member_list_is_refused_and_the_status_says_why(world: World) -> None:
    world.down = {"cp-1", "cp-2"}
    async with world.client("cp-0") as client:
        with pytest.raises(GrpcError, match="no leader") as caught:
            await client.members()
        assert caught.value.code == 14
        status = await client.status()
        assert (status.leader, status.errors) == (0, ("etcdserver: no leader",))


async def test_a_member_with_a_certificate_of_another_authority_is_not_trusted(world: World) -> None:
    context = world.identity(world.authority)
    world.authority = make_authority("other", world.clock)
    with pytest.raises(ssl.SSLCertVerificationError):
        async with world.client("cp-0", context):
            raise AssertionError("the handshake must fail")


async def test_a_client_of_another_authority_gets_no_answer(world: World) -> None:
    context = world.identity(make_authority("other", world.clock))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        async with world.client("cp-0", context) as client:
            await client.status()


class Scripted:
    """A peer that sends what it is told to, whatever it is asked."""

    def __init__(self, sent: bytes) -> None:
        self.sent = sent

    async def read(self) -> bytes:
        sent, self.sent = self.sent, b""
        return sent

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
        (b"", "closed before the response"),
        (bytes.fromhex("000008070000000000") + bytes(4) + (11).to_bytes(4, "big"), "error 11"),
        (bytes.fromhex("000004030000000001") + (7).to_bytes(4, "big"), "error 7"),
        (bytes.fromhex("000001010500000001") + b"\xff", "can't be parsed"),
    ],
)
async def test_a_peer_without_etcd_is_distinguished_from_one_that_refuses(sent: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        await EtcdClient(Channel(Scripted(sent), "x")).status()


@virtual
async def test_a_context_is_dropped_when_etcd_is_not_asked_for_a_while_and_its_certificate_is_kept() -> None:
    pair = (await generate(["etcd"], now=SystemClock().now()))["etcd"]
    cluster, inspector = Key("default", "c"), Inspector(LoopClock())
    first = weakref.ref(inspector._context(cluster, pair))
    for _ in range(5):
        await asyncio.sleep(15.0)
        assert inspector._context(cluster, pair) is first()
    identity = inspector._identity(cluster, pair)
    await asyncio.sleep(60.0)
    assert first() is None
    assert inspector._context(cluster, pair).cert_store_stats()["x509_ca"] == 1
    assert inspector._identity(cluster, pair) is identity
