from __future__ import annotations

import asyncio
import socket

import pytest

from homeport.runtime.testing import virtual
from homeport.sim.network import Balancer, Conflict, Network
from homeport.sim.network.book import OUTSIDE


class Greeter:
    """Says its name, then echoes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sources: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def accept(self, sock: socket.socket, source: str) -> None:
        self.sources.append(source)
        self._tasks.append(asyncio.create_task(self._talk(sock)))

    async def _talk(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(sock, self.name.encode())
            while data := await loop.sock_recv(sock, 100):
                await loop.sock_sendall(sock, data)
        except OSError:
            pass
        finally:
            sock.close()


async def greeting(network: Network, source: str, host: str, port: int = 6443) -> str:
    sock = await network.connect(source, host, port)
    with sock:
        return (await asyncio.get_running_loop().sock_recv(sock, 100)).decode()


def two_hosts() -> tuple[Network, Greeter, Greeter]:
    network = Network()
    first, second = Greeter("a"), Greeter("b")
    network.attach("a", ["10.0.0.1"]).listen(6443, first)
    network.attach("b", ["10.0.0.2"]).listen(6443, second)
    return network, first, second


async def test_an_address_leads_to_the_host_that_holds_it() -> None:
    network, first, _ = two_hosts()
    assert await greeting(network, OUTSIDE, "10.0.0.1") == "a"
    assert await greeting(network, "a", "10.0.0.2") == "b"
    assert first.sources == [OUTSIDE]


async def test_a_name_leads_to_the_first_of_its_addresses_that_answers() -> None:
    network, _, _ = two_hosts()
    network.publish_name("API.example.com", "10.0.0.9", "10.0.0.2")
    assert await greeting(network, "a", "api.example.com.") == "b"
    network.publish_name("api.example.com")
    with pytest.raises(socket.gaierror):
        await network.connect("a", "api.example.com", 6443)


async def test_nobody_at_the_address_no_listener_and_no_power_are_distinguished() -> None:
    network, _, _ = two_hosts()
    with pytest.raises(OSError, match=r"no machine has the address 10\.0\.0\.77"):
        await network.connect("a", "10.0.0.77", 6443)
    with pytest.raises(ConnectionRefusedError):
        await network.connect("a", "10.0.0.2", 22)
    host = network.host("b")
    assert host is not None
    host.set_up(False)
    with pytest.raises(OSError, match="no route to host"):
        await network.connect("a", "10.0.0.2", 6443)
    with pytest.raises(OSError, match="unreachable"):
        await network.connect("b", "10.0.0.1", 6443)


async def test_two_hosts_with_one_address_are_a_conflict_that_the_newest_claim_wins() -> None:
    network, _, _ = two_hosts()
    network.attach("thief", ["10.0.0.1"]).listen(6443, Greeter("thief"))
    assert network.conflicts() == [Conflict("10.0.0.1", ("thief", "a"))]
    assert await greeting(network, "b", "10.0.0.1") == "thief"
    thief = network.host("thief")
    assert thief is not None
    network.detach(thief)
    assert network.conflicts() == []
    assert await greeting(network, "b", "10.0.0.1") == "a"


async def test_a_virtual_address_moves_and_connections_to_its_old_holder_break() -> None:
    network, _, _ = two_hosts()
    a, b = network.host("a"), network.host("b")
    assert a is not None
    assert b is not None
    a.assign("10.0.0.100")
    sock = await network.connect(OUTSIDE, "10.0.0.100", 6443)
    loop = asyncio.get_running_loop()
    assert await loop.sock_recv(sock, 10) == b"a"
    a.release("10.0.0.100")
    b.assign("10.0.0.100")
    assert await loop.sock_recv(sock, 10) == b""
    sock.close()
    assert await greeting(network, OUTSIDE, "10.0.0.100") == "b"


async def test_a_partition_cuts_both_ways_breaks_connections_and_heals() -> None:
    network, _, _ = two_hosts()
    sock = await network.connect("a", "10.0.0.2", 6443)
    loop = asyncio.get_running_loop()
    assert await loop.sock_recv(sock, 10) == b"b"
    network.partition("split", ["a"])
    assert await loop.sock_recv(sock, 10) == b""
    sock.close()
    for source, host in (("a", "10.0.0.2"), ("b", "10.0.0.1"), (OUTSIDE, "10.0.0.1")):
        with pytest.raises(TimeoutError):
            await network.connect(source, host, 6443)
    assert await greeting(network, "a", "10.0.0.1") == "a"
    assert await greeting(network, OUTSIDE, "10.0.0.2") == "b"
    network.heal("split")
    assert await greeting(network, "a", "10.0.0.2") == "b"


async def test_a_partition_between_two_sides_leaves_third_parties_alone() -> None:
    network, _, _ = two_hosts()
    network.partition("split", ["a"], ["b"])
    with pytest.raises(TimeoutError):
        await network.connect("b", "10.0.0.1", 6443)
    assert await greeting(network, OUTSIDE, "10.0.0.1") == "a"


async def test_a_balancer_passes_over_backends_that_do_not_answer() -> None:
    network, _, _ = two_hosts()
    host = network.attach("lb", ["10.0.0.100"])
    host.listen(6443, Balancer(network, host, [("10.0.0.1", 6443), ("10.0.0.2", 6443)]))
    assert {await greeting(network, OUTSIDE, "10.0.0.100") for _ in range(4)} == {"a", "b"}
    down = network.host("a")
    assert down is not None
    down.set_up(False)
    assert {await greeting(network, OUTSIDE, "10.0.0.100") for _ in range(3)} == {"b"}
    network.partition("all", ["lb"])
    with pytest.raises(TimeoutError):
        await network.connect(OUTSIDE, "10.0.0.100", 6443)
    network.heal("all")
    network.partition("behind", ["lb"], ["b"])
    with pytest.raises(ConnectionResetError):
        await network.connect(OUTSIDE, "10.0.0.100", 6443)


@virtual
async def test_a_silent_host_times_out() -> None:
    network, _, _ = two_hosts()
    loop = asyncio.get_running_loop()
    network.silence_seconds = 20
    started = loop.time()
    with pytest.raises(OSError, match="no machine has the address"):
        await network.connect("a", "10.0.0.9", 6443)
    assert loop.time() - started == pytest.approx(20)
