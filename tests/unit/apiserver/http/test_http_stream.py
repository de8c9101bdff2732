"""Connections that become streams: who may, what is spoken on them, and how they end."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from homeport.apiserver.audit import AuditLog
from homeport.apiserver.http.stream import spdy as spdy_session
from homeport.apiserver.http.stream import upgrade
from homeport.apiserver.kinds.pod.portforward import PodPorts
from homeport.machinery.portforward import CHANNEL, CHANNEL_BASE64, FORWARD, SPDY, TUNNEL
from homeport.machinery.spdy import Decoder, Encoder, Frame
from unit.apiserver.http.http_serving import ADMIN, NOBODY, Api, serving, until

PODS = "/api/v1/namespaces/default/pods"
PATH = f"{PODS}/p/portforward"
ECHO, GREETS, SILENT = 7, 13, 9


class Port(asyncio.Protocol):
    """One connection to a port: it repeats, greets and ends, or says nothing."""

    def __init__(self, ports: Ports, number: int) -> None:
        self._ports = ports
        self._number = number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._number == GREETS:
            transport.write(b"hello")
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self._number == ECHO:
            self._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ports.ended += 1


class Ports:
    """The ports of a Pod. All but three refuse."""

    def __init__(self) -> None:
        self.ended = 0

    async def dial(self, pod: dict[str, Any], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if port not in (ECHO, GREETS, SILENT):
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"connection refused: port {port}")
        near, far = socket.socketpair()
        far.setblocking(False)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: Port(self, port), far)
        return await asyncio.open_connection(sock=near)


def pod(name: str = "p", node: str = "n") -> dict[str, Any]:
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@contextlib.asynccontextmanager
async def forwarding(**options: Any) -> AsyncIterator[tuple[Api, Ports]]:
    ports = Ports()
    async with serving(**options) as api:
        installed = PodPorts()
        installed.dial = ports.dial
        installed.install(api.registry)
        assert (await api.post(PODS, pod())).status == 201
        yield api, ports


def headers(token: str = ADMIN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def opened(api: Api, query: str = "", protocol: str = CHANNEL, token: str = ADMIN, path: str = PATH) -> Any:
    protocols = (protocol,) if protocol else ()
    return api.session.ws_connect(f"{api.base}{path}{query}", protocols=protocols, headers=headers(token))


# -- channels ------------------------------------------------------------------------------------------------------


async def test_channels_carry_two_ports_at_once() -> None:
    async with forwarding() as (api, _), opened(api, f"?ports={ECHO},{GREETS}") as ws:
        assert ws.protocol == CHANNEL
        first = [await ws.receive_bytes() for _ in range(4)]
        assert first == [b"\x00\x07\x00", b"\x01\x07\x00", b"\x02\x0d\x00", b"\x03\x0d\x00"]
        assert await ws.receive_bytes() == b"\x02hello"
        await ws.send_bytes(b"\x00ping")
        assert await ws.receive_bytes() == b"\x00ping"
        await ws.send_bytes(b"\x01nobody reads this")
        await ws.send_bytes(b"\x77nor this")
        await ws.send_bytes(b"")
        await ws.send_bytes(b"\x00still here")
        assert await ws.receive_bytes() == b"\x00still here"


async def test_the_socket_closes_in_order_when_every_port_has_ended() -> None:
    async with forwarding() as (api, _), opened(api, f"?ports={GREETS}", protocol="") as ws:
        assert [await ws.receive_bytes() for _ in range(3)] == [b"\x00\x0d\x00", b"\x01\x0d\x00", b"\x00hello"]
        assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE
        assert ws.close_code == 1000


async def test_a_port_that_refuses_is_reported_on_its_channel_of_errors() -> None:
    async with forwarding() as (api, _), opened(api, "?ports=4000") as ws:
        assert [await ws.receive_bytes() for _ in range(2)] == [b"\x00\xa0\x0f", b"\x01\xa0\x0f"]
        text = (await ws.receive_bytes()).decode()
        assert text.startswith("\x01error forwarding port 4000 to pod p, uid ")
        assert text.endswith(": connection refused: port 4000")


async def test_channels_are_spoken_in_base64_too() -> None:
    async with forwarding() as (api, _), opened(api, f"?ports={ECHO}", CHANNEL_BASE64) as ws:
        assert await ws.receive_str() == "0" + base64.b64encode(b"\x07\x00").decode()
        assert await ws.receive_str() == "1" + base64.b64encode(b"\x07\x00").decode()
        await ws.send_str("0!!!")
        await ws.send_str("\x01" + base64.b64encode(b"x").decode())
        await ws.send_str("0" + base64.b64encode(b"\xff\x00").decode())
        assert await ws.receive_str() == "0" + base64.b64encode(b"\xff\x00").decode()


async def test_a_client_that_goes_takes_its_connections_with_it() -> None:
    async with forwarding() as (api, ports):
        ws = await opened(api, f"?ports={ECHO}")
        await ws.receive_bytes()
        ws._response.connection.transport.abort()  # no goodbye
        async with asyncio.timeout(5):
            await until(lambda: ports.ended == 1)
        await ws.close()


async def test_many_bytes_come_back_as_they_went() -> None:
    async with forwarding() as (api, _), opened(api, f"?ports={ECHO}") as ws:
        for _ in range(2):
            await ws.receive_bytes()
        sent = bytes(range(256)) * 8192  # 2 MiB, more than any buffer on the way
        sending = asyncio.create_task(_send(ws, sent))
        got = bytearray()
        while len(got) < len(sent):
            got += (await ws.receive_bytes())[1:]
        await sending
        assert bytes(got) == sent


async def _send(ws: Any, data: bytes) -> None:
    for start in range(0, len(data), 100_000):
        await ws.send_bytes(b"\x00" + data[start : start + 100_000])


# -- who may, and what is asked wrongly ----------------------------------------------------------------------------


def role(*verbs: str) -> tuple[dict[str, Any], dict[str, Any]]:
    rules = [{"apiGroups": [""], "resources": ["pods/portforward"], "verbs": list(verbs)}]
    binding = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}],
    }
    return {"metadata": {"name": "r"}, "rules": rules}, {"metadata": {"name": "b"}, **binding}


@pytest.mark.parametrize(("verbs", "missing"), [(("list",), "get"), (("get",), "create"), (("create",), "get")])
async def test_a_socket_needs_the_right_to_get_and_to_create(verbs: tuple[str, ...], missing: str) -> None:
    async with forwarding() as (api, _):
        await _grant(api, *verbs)
        got = await api.get(f"{PATH}?ports=7", token=NOBODY, headers={"Connection": "Upgrade", "Upgrade": "websocket"})
        assert got.status == 403
        assert f'cannot {missing} resource "pods/portforward"' in got.message
        await _grant(api, "get", "create")
        async with opened(api, "?ports=7", token=NOBODY) as ws:
            assert await ws.receive_bytes() == b"\x00\x07\x00"


async def _grant(api: Api, *verbs: str) -> None:
    made, bound = role(*verbs)
    base = "/apis/rbac.authorization.k8s.io/v1"
    for plural, body in (("clusterroles", made), ("clusterrolebindings", bound)):
        name = body["metadata"]["name"]
        await api.call("DELETE", f"{base}/{plural}/{name}")
        assert (await api.post(f"{base}/{plural}", body)).status == 201


@pytest.mark.parametrize(
    ("method", "path", "sent", "code", "message"),
    [
        ("GET", PATH, {}, 400, "upgraded connection"),
        ("POST", PATH, {"Upgrade": SPDY}, 400, "upgraded connection"),
        ("POST", PATH, {"Connection": "Upgrade", "Upgrade": "h2c"}, 400, "upgraded connection"),
        ("DELETE", PATH, {}, 405, "does not allow this method"),
        ("GET", f"{PODS}/q/portforward", {}, 404, 'pods "q" not found'),
        ("POST", PATH, {"Connection": "Upgrade", "Upgrade": SPDY}, 400, "nothing is not served here"),
        (
            "POST",
            PATH,
            {"Connection": "Upgrade", "Upgrade": SPDY, "X-Stream-Protocol-Version": "v9"},
            400,
            "v9 is not served here: use portforward.k8s.io",
        ),
        ("POST", f"{PATH}?ports=7", {"Connection": "Upgrade", "Upgrade": "websocket"}, 405, "opened with GET"),
        ("GET", f"{PATH}?ports=7", {"Connection": "Upgrade", "Upgrade": "websocket"}, 400, "handshake"),
    ],
)
async def test_what_can_not_be_upgraded_is_refused_with_the_reason(
    method: str, path: str, sent: dict[str, str], code: int, message: str
) -> None:
    async with forwarding() as (api, _):
        got = await api.call(method, path, headers=sent)
        assert got.status == code
        assert message in got.message


@pytest.mark.parametrize(
    ("query", "protocol", "message"),
    [
        ("", CHANNEL, "the query parameter ports is missing"),
        ("?ports=7,http", CHANNEL, "'http' is not a valid port"),
        ("?ports=" + ",".join(["7"] * 128), CHANNEL, "128 ports are too many"),
        ("?ports=7", "v9.example", "none of the protocols v9.example is served here"),
    ],
)
async def test_a_socket_that_asks_for_nonsense_is_refused(query: str, protocol: str, message: str) -> None:
    sent = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": protocol,
    }  # fmt: skip
    async with forwarding() as (api, _):
        got = await api.get(PATH + query, headers=sent)
        assert (got.status, message in got.message) == (400, True)


async def test_a_pod_without_a_node_has_no_ports_yet() -> None:
    async with forwarding() as (api, _):
        assert (await api.post(PODS, pod("q", ""))).status == 201
        got = await api.get(f"{PODS}/q/portforward?ports=7")
        assert (got.status, got.message) == (400, "pod q does not have a host assigned")


async def test_a_server_whose_pods_run_nowhere_says_so() -> None:
    async with serving() as api:
        PodPorts().install(api.registry)
        assert (await api.post(PODS, pod())).status == 201
        got = await api.get(f"{PATH}?ports=7")
        assert got.status == 400
        assert "this API server has no nodes" in got.message


# -- SPDY ----------------------------------------------------------------------------------------------------------


class Peer:
    """A client of SPDY over anything that carries bytes."""

    def __init__(self, send: Any, receive: Any) -> None:
        self.encoder = Encoder()
        self._decoder = Decoder()
        self._send = send
        self._receive = receive
        self._frames: list[Frame] = []

    async def send(self, *frames: bytes) -> None:
        await self._send(b"".join(frames))

    async def frame(self) -> Frame | None:
        async with asyncio.timeout(5):
            while not self._frames:
                data = await self._receive()
                if not data:
                    return None
                self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    async def open(self, port: int, first: int = 1, request: str = "0") -> None:
        """As client-go does: the stream of errors first, its sending half closed at once."""
        head = {"port": str(port), "requestID": request} if request else {"port": str(port)}
        await self.send(
            self.encoder.stream(first, {"streamType": "error", **head}),
            self.encoder.data(first, b"", fin=True),
            self.encoder.stream(first + 2, {"streamType": "data", **head}),
        )
        assert [await self.frame(), await self.frame()] == [Frame(2, first), Frame(2, first + 2)]


@contextlib.asynccontextmanager
async def plain(api: Api) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    lines = [
        f"POST {PATH} HTTP/1.1", "Host: x", f"Authorization: Bearer {ADMIN}", "Connection: Upgrade", f"Upgrade: {SPDY}",
        f"X-Stream-Protocol-Version: {FORWARD}", "Content-Length: 0", "", "",
    ]  # fmt: skip
    writer.write("\r\n".join(lines).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 101 ")
    assert f"X-Stream-Protocol-Version: {FORWARD}\r\n" in head

    async def send(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    try:
        yield Peer(send, lambda: reader.read(65536))
    finally:
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def tunnelled(api: Api) -> AsyncIterator[Peer]:
    async with opened(api, protocol=TUNNEL) as ws:
        assert ws.protocol == TUNNEL

        async def receive() -> bytes:
            message = await ws.receive()
            return bytes(message.data) if message.type is aiohttp.WSMsgType.BINARY else b""

        yield Peer(ws.send_bytes, receive)


@pytest.fixture(params=[plain, tunnelled], ids=["plain", "tunnelled"])
def carried(request: pytest.FixtureRequest) -> Any:
    return request.param


async def test_streams_carry_bytes_until_the_port_has_ended(carried: Any) -> None:
    async with forwarding() as (api, _), carried(api) as peer:
        await peer.open(ECHO)
        await peer.send(peer.encoder.data(3, b"ping"))
        assert await peer.frame() == Frame(0, 3, data=b"ping")
        await peer.send(peer.encoder.data(3, b"last", fin=True))
        # The end of what the client sends reaches the port, which ends in turn.
        assert await peer.frame() == Frame(0, 3, data=b"last")
        assert [await peer.frame(), await peer.frame()] == [Frame(0, 3, True), Frame(0, 1, True)]


async def test_connections_share_one_session(carried: Any) -> None:
    async with forwarding() as (api, _), carried(api) as peer:
        await peer.open(ECHO, 1, "0")
        await peer.open(ECHO, 5, "")  # an old client names no request
        await peer.send(peer.encoder.data(7, b"b"), peer.encoder.ping(1), peer.encoder.data(3, b"a"))
        got = [await peer.frame() for _ in range(3)]
        assert Frame(6, 1) in got
        assert Frame(0, 7, data=b"b") in got
        assert Frame(0, 3, data=b"a") in got


async def test_a_port_that_refuses_is_reported_on_the_stream_of_errors(carried: Any) -> None:
    async with forwarding() as (api, _), carried(api) as peer:
        await peer.open(4000)
        told = await peer.frame()
        assert told is not None
        assert told.number == 1
        assert told.data.endswith(b": connection refused: port 4000")
        assert [await peer.frame(), await peer.frame()] == [Frame(3, 3, status=5), Frame(3, 1, status=5)]
        await peer.open(ECHO, 5, "1")  # and the session goes on
        await peer.send(peer.encoder.data(7, b"x"))
        assert await peer.frame() == Frame(0, 7, data=b"x")


async def test_a_stream_that_is_reset_ends_its_connection(carried: Any) -> None:
    async with forwarding() as (api, ports), carried(api) as peer:
        await peer.open(ECHO)
        await peer.send(peer.encoder.reset(3, 5))
        async with asyncio.timeout(5):
            await until(lambda: ports.ended == 1)
        await peer.send(peer.encoder.data(3, b"too late"), peer.encoder.ping(3))
        assert await peer.frame() == Frame(6, 3)


@pytest.mark.parametrize(
    ("stream", "sent", "status"),
    [
        (1, {"streamType": "data"}, 3),
        (1, {"streamType": "data", "port": "0"}, 3),
        (1, {"streamType": "stdin", "port": "7"}, 3),
        (2, {"streamType": "data", "port": "7"}, 1),
    ],
)
async def test_streams_that_make_no_sense_are_refused(stream: int, sent: dict[str, str], status: int) -> None:
    async with forwarding() as (api, _), plain(api) as peer:
        await peer.send(peer.encoder.stream(stream, sent))
        assert await peer.frame() == Frame(3, stream, status=status)
        await peer.open(ECHO, 3)


async def test_a_second_stream_of_the_same_kind_is_refused() -> None:
    async with forwarding() as (api, _), plain(api) as peer:
        await peer.open(ECHO)
        await peer.send(peer.encoder.stream(5, {"streamType": "data", "port": "7", "requestID": "0"}))
        assert await peer.frame() == Frame(3, 5, status=3)


async def test_a_stream_whose_other_half_never_comes_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spdy_session, "PAIR_SECONDS", 0.01)
    async with forwarding() as (api, _), plain(api) as peer:
        await peer.send(peer.encoder.stream(1, {"streamType": "error", "port": "7", "requestID": "0"}))
        assert await peer.frame() == Frame(2, 1)
        told = await peer.frame()
        assert told is not None
        assert b"its other stream did not come" in told.data
        assert await peer.frame() == Frame(3, 1, status=5)


async def test_no_more_than_so_many_connections_share_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spdy_session, "MAX_PAIRS", 1)
    async with forwarding() as (api, _), plain(api) as peer:
        await peer.open(ECHO)
        await peer.send(peer.encoder.stream(5, {"streamType": "error", "port": "7", "requestID": "1"}))
        assert await peer.frame() == Frame(3, 5, status=3)


async def test_a_client_without_spdy_gets_goaway() -> None:
    async with forwarding() as (api, _), plain(api) as peer:
        await peer.send(b"\x16\x03\x01\xff\xff\xff\xff\xff" * 8)
        assert await peer.frame() == Frame(7, 0, status=1)
        assert await peer.frame() is None


async def test_many_bytes_come_back_over_spdy(carried: Any) -> None:
    async with forwarding() as (api, _), carried(api) as peer:
        await peer.open(ECHO)
        sent = bytes(range(256)) * 8192
        frames = [peer.encoder.data(3, sent[at : at + 32768]) for at in range(0, len(sent), 32768)]

        async def send_all() -> None:
            for frame in frames:
                await peer.send(frame)

        sending = asyncio.create_task(send_all())
        got = bytearray()
        while len(got) < len(sent):
            frame = await peer.frame()
            assert frame is not None
            got += frame.data
        await sending
        assert bytes(got) == sent


# -- the end -------------------------------------------------------------------------------------------------------


async def test_the_end_of_the_server_ends_the_streams(carried: Any) -> None:
    async with forwarding() as (api, ports), carried(api) as peer:
        await peer.open(ECHO)
        stopping = asyncio.create_task(api.server.drain(5.0))
        goodbye = await peer.frame()
        assert goodbye is not None
        assert goodbye.kind == 7
        assert await peer.frame() is None
        await stopping
        async with asyncio.timeout(5):
            await until(lambda: ports.ended == 1)


async def test_streams_on_which_nothing_moves_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with _upgrades(monkeypatch, idle_seconds=0.02):
        async with forwarding() as (api, _), opened(api, f"?ports={SILENT}") as ws:
            for _ in range(2):
                await ws.receive_bytes()
            assert (await ws.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_too_many_streams_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with _upgrades(monkeypatch, limit=1):
        async with forwarding() as (api, _), opened(api, f"?ports={SILENT}"):
            got = await api.get(f"{PATH}?ports=7", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
            assert (got.status, got.headers["Retry-After"]) == (429, "5")


@contextlib.contextmanager
def _upgrades(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[None]:
    made = upgrade.Upgrades
    with monkeypatch.context() as patch:
        patch.setattr("homeport.apiserver.http.connect.Upgrades", lambda metrics: made(metrics, **options))
        yield


async def test_forwarded_connections_are_audited(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log")
    async with forwarding(audit=log) as (api, _), opened(api, f"?ports={GREETS}") as ws:
        async for _ in ws:
            pass
    log.close()
    entries = [orjson.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]
    (entry,) = [each for each in entries if (each.get("objectRef") or {}).get("subresource") == "portforward"]
    assert (entry["verb"], entry["responseStatus"]["code"], entry["user"]["username"]) == ("get", 101, "admin")
