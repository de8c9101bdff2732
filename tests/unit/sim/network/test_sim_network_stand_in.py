"""Whatever Prism address is dialled, the simulator answers, with a certificate for the name that was dialled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from homeport.client.dial import DialOptions
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.tls import Authority, DynamicCertificate
from homeport.sim.network import Loopback, Network, Proxy
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire

ADMIN = {"Authorization": aiohttp.encode_basic_auth("admin", "password")}
PATH = "/api/nutanix/v3/users/me"


@dataclass
class Site:
    network: Network
    called: DynamicCertificate
    port: int
    dial: DialOptions

    async def ask(self, server: str) -> int:
        async with aiohttp.ClientSession() as session:
            url, tls = server + PATH, self.dial.tls(self.dial.ca_pem)
            async with session.get(url, headers=ADMIN, proxy=self.dial.proxy, ssl=tls) as answer:
                return answer.status


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    authority = Authority.ensure(folder, SystemClock())
    called = authority.called("server", ["localhost", "127.0.0.1"], SystemClock())
    wire = Wire(Prism())
    port = await wire.start(tls=called.context)
    network, answering = Network(), Loopback("127.0.0.1", port)

    def answer(dialled: str) -> Loopback:
        called.admit(dialled)
        return answering

    network.stand_in(9440, network.attach("prism"), answer)
    proxy = Proxy(network)
    url = await proxy.start()
    try:
        yield Site(network, called, port, DialOptions(url, authority.path.read_bytes()))
    finally:
        await proxy.close()
        await wire.close()


@pytest.mark.parametrize(
    "host", ["prism-central.example.com", "10.0.0.10", "127.0.0.1", "[fd00::10]", "PC.Example.COM", "pc"]
)
async def test_any_prism_address_is_served_and_its_certificate_verifies(host: str, tmp_path: Path) -> None:
    async with site(tmp_path) as found:
        assert await found.ask(f"https://{host}:9440") == 200


async def test_one_name_after_the_other_is_answered(tmp_path: Path) -> None:
    async with site(tmp_path) as found:
        for number in range(20):
            assert await found.ask(f"https://pc-{number}.example.com:9440") == 200
        assert await found.ask("https://10.0.0.77:9440") == 200
        assert await found.ask("https://pc-0.example.com:9440") == 200


async def test_other_ports_of_unknown_hosts_stay_unanswered(tmp_path: Path) -> None:
    async with site(tmp_path) as found:
        with pytest.raises(aiohttp.ClientHttpProxyError):
            await found.ask("https://10.0.0.10:443")


async def test_a_host_that_serves_the_port_itself_is_asked_itself(tmp_path: Path) -> None:
    async with site(tmp_path) as found:
        network = found.network
        own = Loopback("127.0.0.1", 9)
        network.attach("own", ["10.0.0.50"]).listen(9440, own)
        assert network.find("outside", "10.0.0.50", 9440)[2] is own
        assert network.find("outside", "10.0.0.51", 9440)[0].name == "prism"


async def test_a_partition_and_a_loss_of_power_reach_the_stand_in_too(tmp_path: Path) -> None:
    async with site(tmp_path) as found:
        found.network.partition("cut", ["prism"])
        with pytest.raises(TimeoutError):
            found.network.find("outside", "10.0.0.10", 9440)
        found.network.heal("cut")
        host = found.network.host("prism")
        assert host is not None
        host.set_up(False)
        with pytest.raises(OSError, match="no route to host"):
            found.network.find("outside", "10.0.0.10", 9440)


async def test_a_client_that_comes_without_the_proxy_is_answered_by_the_name_it_asks_for(tmp_path: Path) -> None:
    async with site(tmp_path) as found, aiohttp.ClientSession() as session:
        tls = found.dial.tls(found.dial.ca_pem)
        url = f"https://127.0.0.1:{found.port}{PATH}"
        async with session.get(url, headers=ADMIN, ssl=tls, server_hostname="prism.acme.test") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("host", ["", "grün.example.com", "with space", "x" * 300])
def test_names_that_no_certificate_can_hold_are_passed_over(host: str, tmp_path: Path) -> None:
    called = Authority.ensure(tmp_path, SystemClock()).called("server", ["localhost"], SystemClock())
    called.admit(host)
    called.admit("fine.example.com")


async def test_a_stand_in_for_some_names_comes_before_one_for_all() -> None:
    network = Network()
    everywhere, special = Loopback("127.0.0.1", 1), Loopback("127.0.0.1", 2)
    network.stand_in(9440, network.attach("all"), lambda dialled: everywhere)
    network.stand_in(9440, network.attach("some"), lambda dialled: special, ["Other.example.com", "10.20.0.2"])
    found = {name: network.find("outside", name, 9440)[2] for name in ("other.example.com", "10.20.0.2", "10.1.1.1")}
    assert found == {"other.example.com": special, "10.20.0.2": special, "10.1.1.1": everywhere}
    with pytest.raises(OSError, match="no such host"):
        network.find("outside", "other.example.com", 443)
