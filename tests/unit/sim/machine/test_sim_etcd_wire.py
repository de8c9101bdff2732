from __future__ import annotations

import asyncio
import ssl
import struct
from pathlib import Path

import pytest

from homeport.machinery.hpack import Decoder, HpackError, decode_huffman, encode
from homeport.machinery.http2 import PREFACE
from homeport.machinery.protowire import field, nested, number_of, parse
from homeport.runtime.clock import SystemClock
from homeport.runtime.testing import virtual
from homeport.sim.machine.etcdwire.grpc import Status
from homeport.sim.machine.etcdwire.member import EtcdService
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.trust.authority import now_of
from homeport.sim.network import Network
from unit.sim.machine.sim_kit import PACE, Secrets, Sim, join_data, simulation


def test_huffman_codes_are_those_of_the_standard() -> None:
    assert decode_huffman(bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")) == b"www.example.com"
    assert decode_huffman(bytes.fromhex("9d29ad171863c78f0b97c8e9ae82ae43d3")) == b"https://www.example.com"
    with pytest.raises(HpackError):
        decode_huffman(b"\xff\xff\xff\xff")


def test_a_decoder_remembers_what_earlier_blocks_said() -> None:
    decoder = Decoder()
    first = decoder.decode(bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff"))
    assert first == [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")]
    second = decoder.decode(bytes.fromhex("828684be5886a8eb10649cbf"))
    assert second[-2:] == [(":authority", "www.example.com"), ("cache-control", "no-cache")]
    assert decoder.decode(encode([("grpc-message", "x" * 300)])) == [("grpc-message", "x" * 300)]


@pytest.mark.parametrize("block", ["ff", "40", "c8", "0085", "7fffffffffffff7f"])
def test_an_invalid_block_is_refused(block: str) -> None:
    with pytest.raises(HpackError):
        Decoder().decode(bytes.fromhex(block))


def test_messages_are_written_and_read() -> None:
    raw = field(1, 2**63 + 5) + field(2, "name") + field(3, False) + nested(4, b"")
    assert parse(raw) == {1: [2**63 + 5], 2: [b"name"], 4: [b""]}
    assert number_of(parse(raw), 3) == 0
    with pytest.raises(ValueError, match="cut short"):
        parse(raw[:-5])


async def three(sim: Sim) -> None:
    await sim.cluster_up()
    for name in ("cp-1", "cp-2"):
        await sim.boot(name, join_data(sim.secrets, control_plane=True))


def service(sim: Sim, name: str) -> EtcdService:
    host = sim.network.host(name)
    assert host is not None
    found = host.service(2379)
    assert isinstance(found, EtcdService)
    return found


def call(sim: Sim, name: str, method: str, request: bytes = b"") -> dict[int, list[int | bytes]]:
    return parse(service(sim, name).calls()[f"/etcdserverpb.{method}"](request))


@virtual
async def test_members_are_listed_moved_and_removed_over_the_wire() -> None:
    async with simulation() as sim:
        await three(sim)
        cluster = sim.cluster
        members = [parse(bytes(each)) for each in call(sim, "cp-0", "Cluster/MemberList")[2] if isinstance(each, bytes)]
        assert [member[2] for member in members] == [[b"cp-0"], [b"cp-1"], [b"cp-2"]]
        assert members[0][4] == [b"https://10.0.0.11:2379"]
        target = cluster.etcd.members["cp-1"].id
        with pytest.raises(Status, match="not leader"):
            call(sim, "cp-2", "Maintenance/MoveLeader", field(1, target))
        call(sim, "cp-0", "Maintenance/MoveLeader", field(1, target))
        assert number_of(call(sim, "cp-2", "Maintenance/Status"), 4) == target
        call(sim, "cp-1", "Cluster/MemberRemove", field(1, cluster.etcd.members["cp-0"].id))
        assert {plane.node for plane in cluster.serving()} == {"cp-1", "cp-2"}
        host = sim.network.host("cp-0")
        assert host is not None
        assert host.service(2379) is None  # a member that was removed ends
        with pytest.raises(Status, match="member not found"):
            call(sim, "cp-1", "Cluster/MemberRemove", field(1, 42))


@virtual
async def test_without_quorum_the_status_says_so_and_changes_are_refused() -> None:
    async with simulation() as sim:
        await three(sim)
        sim.power_off("cp-0")
        sim.power_off("cp-1")
        status = call(sim, "cp-2", "Maintenance/Status")
        assert number_of(status, 4) == 0
        assert status[8] == [b"etcdserver: no leader"]
        with pytest.raises(Status, match="no leader") as caught:
            call(sim, "cp-2", "Cluster/MemberList", field(1, True))
        assert caught.value.code == 14
        assert len(call(sim, "cp-2", "Cluster/MemberList")[2]) == 3


@virtual
async def test_alarms_are_raised_shown_and_cleared() -> None:
    async with simulation() as sim:
        await three(sim)
        member = sim.cluster.etcd.members["cp-1"].id
        call(sim, "cp-0", "Maintenance/Alarm", field(1, 1) + field(2, member) + field(3, 1))
        shown = call(sim, "cp-2", "Maintenance/Alarm")[2]
        assert [parse(bytes(each)) for each in shown if isinstance(each, bytes)] == [{1: [member], 2: [1]}]
        call(sim, "cp-0", "Maintenance/Alarm", field(1, 2) + field(2, member) + field(3, 1))
        assert 2 not in call(sim, "cp-0", "Maintenance/Alarm")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> list[tuple[str, str]]:
    """One call; gives its trailer."""
    fields = [(":method", "POST"), (":scheme", "https"), (":path", path), ("content-type", "application/grpc")]
    writer.write(
        PREFACE + frame(4, 0, 0, b"") + frame(1, 4, 1, encode(fields)) + frame(0, 1, 1, struct.pack(">BI", 0, 0))
    )
    decoder, trailer = Decoder(), []
    while True:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        if head[3] == 1:
            trailer = decoder.decode(payload)
            if head[4] & 1:
                return trailer


async def test_clients_come_in_over_mutual_tls_alone(tmp_path: Path) -> None:
    clock = SystemClock()
    network = Network()
    fleet = Fleet(network, clock, pace=PACE)
    sim = Sim(network, fleet, clock, Secrets.make(clock))
    try:
        cluster = await sim.cluster_up()
        assert cluster.etcd_authority is not None
        identity = tmp_path / "client.pem"
        identity.write_bytes(cluster.etcd_authority.issuer.client("kcp", (), now_of(clock)()).pem)
        for path, ending in (("/etcdserverpb.Maintenance/Status", "0"), ("/etcdserverpb.KV/Range", "12")):
            context = ssl.create_default_context(cadata=sim.secrets.etcd.certificate.decode())
            context.set_alpn_protocols(["h2"])
            context.load_cert_chain(identity)
            sock = await network.connect("outside", "10.0.0.11", 2379)
            reader, writer = await asyncio.open_connection(sock=sock, ssl=context, server_hostname="cp-0")
            assert ("grpc-status", ending) in await exchange(reader, writer, path)
            writer.close()
            await writer.wait_closed()
        stranger = ssl.create_default_context(cadata=sim.secrets.etcd.certificate.decode())
        stranger.set_alpn_protocols(["h2"])
        sock = await network.connect("outside", "10.0.0.11", 2379)
        # The handshake is over for the client before the server has seen that it shows no certificate.
        reader, writer = await asyncio.open_connection(sock=sock, ssl=stranger, server_hostname="cp-0")
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await exchange(reader, writer, "/etcdserverpb.Maintenance/Status")
    finally:
        await fleet.close()
