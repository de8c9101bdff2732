"""Services of type LoadBalancer on an API server."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.ccm.install import install
from homeport.ccm.service import ANNOUNCED, SERVICE, ingress, parse_pool
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import Plane, plane, versions, virtual
from reconcile.ccm.cloud_kit import MemoryCloud


def running(*pools: str) -> Any:
    return lambda p: install(p.manager, MemoryCloud(), [parse_pool(each) for each in pools])


def service(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


async def given(p: Plane, name: str) -> str:
    found = await p.until(SERVICE, Key("default", name), lambda s: bool(ingress(s)))
    assert found["metadata"]["annotations"][ANNOUNCED] == ingress(found)[0]
    return ingress(found)[0]


@virtual
async def test_services_that_come_at_once_get_different_addresses() -> None:
    async with plane(running("10.0.0.1-10.0.0.20")) as p:
        await asyncio.gather(*(p.have(service(f"s{number}")) for number in range(20)))
        assert len({await given(p, f"s{number}") for number in range(20)}) == 20


@virtual
async def test_an_address_that_is_given_back_goes_to_whoever_waits() -> None:
    async with plane(running("10.0.0.1")) as p:
        await p.have(service("first"))
        address = await given(p, "first")
        await p.have(service("second"))
        await p.settle()
        assert ingress(await p.client.get(SERVICE, Key("default", "second"))) == []
        await p.client.delete(SERVICE, Key("default", "first"))
        assert await given(p, "second") == address


@virtual
async def test_a_service_that_is_no_longer_a_load_balancer_releases_its_address() -> None:
    async with plane(running("10.0.0.1")) as p:
        await p.have(service("s"))
        await given(p, "s")
        await p.client.patch(SERVICE, Key("default", "s"), MergePatch({"spec": {"type": "ClusterIP"}}))
        found = await p.until(SERVICE, Key("default", "s"), lambda s: not ingress(s))
        found = await p.until(
            SERVICE, Key("default", "s"), lambda s: ANNOUNCED not in s.metadata.get("annotations", {})
        )
        assert found["spec"]["type"] == "ClusterIP"


@virtual
async def test_services_of_others_are_not_touched() -> None:
    async with plane(running("10.0.0.1")) as p:
        await p.have(service("s", loadBalancerClass="example.com/other"), service("t", type="ClusterIP"))
        before = versions(p)
        await asyncio.sleep(600)
        assert versions(p) == before


@virtual
async def test_an_address_stays_over_a_restart() -> None:
    async with plane(running("10.0.0.1-10.0.0.9")) as p:
        await p.have(service("a"), service("b"))
        held = [await given(p, "a"), await given(p, "b")]
        await p.client.delete(SERVICE, Key("default", "a"))
        await p.settle()
        await p.stop()
        p.manager = type(p.manager)(p.server.client(), clock=p.clock)
        running("10.0.0.1-10.0.0.9")(p)
        await p.start()
        await p.settle()
        assert await given(p, "b") == held[1]
