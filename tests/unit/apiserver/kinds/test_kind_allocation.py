"""Cluster IPs and node ports: no two Services get the same one."""

from __future__ import annotations

import asyncio

import pytest

from homeport.apiserver.kinds.network.allocation import Allocator, Taken
from unit.apiserver.kinds.kind_server import Server

SERVICES = "/api/v1/namespaces/default/services"


async def make(server: Server, name: str, **spec: object) -> tuple[int, dict[str, object]]:
    body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}
    return await server.ask("POST", SERVICES, body)


async def test_services_made_at_once_get_addresses_and_ports_of_their_own(server: Server) -> None:
    made = await asyncio.gather(*(make(server, f"s{i}", type="NodePort") for i in range(200)))
    specs = [answer["spec"] for _, answer in made]
    assert {code for code, _ in made} == {201}
    assert len({spec["clusterIP"] for spec in specs}) == 200  # type: ignore[index]
    assert len({spec["ports"][0]["nodePort"] for spec in specs}) == 200  # type: ignore[index]


async def test_an_address_wanted_twice_at_once_is_given_once(server: Server) -> None:
    made = await asyncio.gather(*(make(server, f"s{i}", clusterIP="10.96.0.50") for i in range(5)))
    assert sorted(code for code, _ in made) == [201, 422, 422, 422, 422]


async def test_what_a_deleted_service_had_is_free_again(server: Server) -> None:
    assert (await make(server, "a", clusterIP="10.96.0.50"))[0] == 201
    assert (await make(server, "b", clusterIP="10.96.0.50"))[0] == 422
    await server.ask("DELETE", f"{SERVICES}/a")
    assert (await make(server, "b", clusterIP="10.96.0.50"))[0] == 201


async def test_a_create_that_failed_does_not_keep_its_address_from_another_try(server: Server) -> None:
    await make(server, "a")
    assert (await make(server, "a", clusterIP="10.96.0.60"))[0] == 409
    await server.ask("DELETE", f"{SERVICES}/a")
    assert (await make(server, "a", clusterIP="10.96.0.60"))[0] == 201


async def test_the_servers_own_address_is_taken_from_the_start(server: Server) -> None:
    code, answer = await make(server, "a", clusterIP="10.96.0.1")
    assert code == 422
    assert "already allocated" in str(answer["message"])


async def test_both_protocols_of_a_port_share_a_node_port(server: Server) -> None:
    ports = [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}, {"name": "m", "port": 9153}]
    code, answer = await make(server, "dns", type="NodePort", ports=ports)
    assert code == 201
    tcp, udp, other = (port["nodePort"] for port in answer["spec"]["ports"])  # type: ignore[index]
    assert tcp == udp != other


@pytest.mark.parametrize("network", ["10.96.0.0/30", "10.96.0.0/29", "10.96.0.0/24", "10.96.0.0/12"])
def test_a_small_network_is_used_up_to_its_last_address(network: str) -> None:
    allocator = Allocator(network)
    allocator.addresses.put("default/kubernetes", [allocator.first_address])
    found: list[str] = []
    while len(found) < 300 and (address := allocator.free_address(f"ns/{len(found)}")) is not None:
        found.append(address)
    size = allocator.network.num_addresses
    assert len(found) == len(set(found)) == min(size - 3, 300)
    assert all(allocator.contains(address) for address in found)


def test_ports_run_out_without_being_given_twice() -> None:
    allocator = Allocator(ports=range(30000, 30003))
    found = [allocator.free_port(f"ns/{i}") for i in range(4)]
    assert sorted(found[:3]) == [30000, 30001, 30002]  # type: ignore[type-var]
    assert found[3] is None


def test_a_reservation_ends_and_a_use_does_not() -> None:
    now = 0.0
    taken: Taken[int] = Taken(lambda: now)
    taken.reserve(1, "a")
    taken.put("b", [2])
    assert taken.by_other(1, "b")
    assert not taken.by_other(1, "a")
    now = 60.0
    assert not taken.by_other(1, "b")
    assert taken.by_other(2, "a")
