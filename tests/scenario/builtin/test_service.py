"""Services of the plane: addresses from pools and ports, and connections that reach ready Pods."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from homeport.apiserver.auth.pki import PKI
from homeport.builtin.workload.address import ADDRESS_ANNOTATION, Pool, ServiceOptions
from homeport.builtin.workload.service import REACHABLE
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import run_virtual
from homeport.runtime.workload.coroutine import ContainerHandle, CoroutineRunner
from homeport.runtime.workload.kind import SERVICE
from homeport.runtime.workload.runner import Launch, Runners
from homeport.sim.hosted.site import ServiceSite
from homeport.sim.network import Network
from scenario.builtin.plane import EVENT, POD, Plane, plane

PORT = 8080


async def _echo(launch: Launch, inside: ContainerHandle) -> int:
    """Answers every connection with its Pod's name. Pods with the label `ready: no` run, but are not ready."""
    meta = launch.pod["metadata"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(meta["name"].encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, launch.address, PORT):
        inside.ready(meta["labels"].get("ready") != "no")
        await inside.stopping.wait()
    return 0


def _runners() -> Runners:
    runners = Runners()
    runners.register("echo", CoroutineRunner(_echo, ready_at_start=False), images=["echo:*"])
    return runners


@contextlib.asynccontextmanager
async def _plane(folder: Path, options: ServiceOptions) -> AsyncIterator[Plane]:
    async with plane(PKI.ensure(folder / "pki"), running=False, runners=_runners(), services=options) as made:
        await made.start()
        yield made


async def _pod(plane: Plane, name: str, app: str = "web", ready: str = "yes") -> None:
    body = {"containers": [{"name": "c", "image": "echo:1"}]}
    meta = {"name": name, "namespace": "default", "labels": {"app": app, "ready": ready}}
    await plane.client.create({"metadata": meta, "spec": body}, kind=POD)
    await plane.until(lambda: _runs(plane, name), f"Pod {name} runs")


async def _runs(plane: Plane, name: str) -> bool:
    return bool(((await plane.get(POD, name)).get("status") or {}).get("phase") == "Running")


async def _service(plane: Plane, name: str, kind: str = "LoadBalancer", app: str = "web", **spec: Any) -> None:
    ports = [{"name": "a", "port": 6443, "targetPort": PORT}]
    await plane.make(SERVICE, name, spec={"type": kind, "selector": {"app": app}, "ports": ports, **spec})


async def _ingress(plane: Plane, name: str) -> list[dict[str, Any]]:
    found = ((await plane.get(SERVICE, name)).get("status") or {}).get("loadBalancer") or {}
    return list(found.get("ingress") or ())


async def _address(plane: Plane, name: str) -> str:
    await plane.until(lambda: _ingress(plane, name), f"an address of Service {name}")
    return str((await _ingress(plane, name))[0]["ip"])


async def _local(plane: Plane, name: str) -> str:
    async def found() -> str:
        return str(((await plane.get(SERVICE, name)).metadata.get("annotations") or {}).get(ADDRESS_ANNOTATION, ""))

    await plane.until(found, f"a loopback address of Service {name}")
    return await found()


async def _ask(host: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()


async def _ask_at(network: Network, source: str, host: str, port: int) -> str:
    sock = await network.connect(source, host, port)
    with sock:
        return (await asyncio.get_running_loop().sock_recv(sock, 100)).decode()


def test_without_a_pool_a_load_balancer_is_a_port_of_the_plane(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions()) as plane:
            await _pod(plane, "one")
            await _service(plane, "web")
            await _address(plane, "web")
            service = await plane.get(SERVICE, "web")
            port = service["spec"]["ports"][0]["nodePort"]
            (entry,) = await _ingress(plane, "web")
            assert entry["ip"] == "127.0.0.1"
            assert entry["ports"] == [{"port": port, "protocol": "TCP"}]
            assert await _ask("127.0.0.1", port) == "one"

    run_virtual(main())


def test_connections_reach_all_ready_pods_and_no_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions()) as plane:
            await _pod(plane, "one")
            await _pod(plane, "two")
            await _pod(plane, "late", ready="no")
            await _pod(plane, "other", app="db")
            await _service(plane, "web", "ClusterIP")
            address = await _local(plane, "web")
            assert address.startswith("127.")
            await plane.settle(1)
            assert {await _ask(address, 6443) for _ in range(4)} == {"one", "two"}
            await plane.delete(POD, "one")
            await plane.until(lambda: plane.names("pods", "default/one") == [], "the Pod is gone")
            await plane.settle(1)
            assert {await _ask(address, 6443) for _ in range(4)} == {"two"}

    run_virtual(main())


def test_two_services_never_share_an_address_of_the_pool(tmp_path: Path) -> None:
    async def main() -> None:
        options = ServiceOptions(pool=Pool("127.200.77.1-127.200.77.2"))
        async with _plane(tmp_path, options) as plane:
            await _pod(plane, "one")
            await _pod(plane, "two", app="db")
            await _service(plane, "web")
            await _service(plane, "db", app="db")
            web, db = await _address(plane, "web"), await _address(plane, "db")
            assert {web, db} == {"127.200.77.1", "127.200.77.2"}
            await plane.settle(1)
            assert [await _ask(web, 6443), await _ask(db, 6443)] == ["one", "two"]
            await _service(plane, "third")
            await plane.until(lambda: _warned(plane, "PoolExhausted"), "a warning")
            assert await _ingress(plane, "third") == []
            [told] = (await plane.get(SERVICE, "third"))["status"]["conditions"]
            assert (told["type"], told["status"], told["reason"]) == (REACHABLE, "False", "PoolExhausted")
            await plane.delete(SERVICE, "web")
            assert await _address(plane, "third") == web
            await plane.settle(1)
            assert "conditions" not in (await plane.get(SERVICE, "third"))["status"]

    run_virtual(main())


def _warned(plane: Plane, reason: str) -> bool:
    return any(event["reason"] == reason for event in plane.objects(EVENT.qualified))


def test_an_address_that_is_asked_for_must_be_free_and_in_the_pool(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions(pool=Pool("127.200.78.0/28"))) as plane:
            await _service(plane, "web", loadBalancerIP="127.200.78.7")
            assert await _address(plane, "web") == "127.200.78.7"
            await _service(plane, "same", loadBalancerIP="127.200.78.7")
            await plane.until(lambda: _warned(plane, "AddressInUse"), "a warning")
            await _service(plane, "far", loadBalancerIP="10.9.9.9")
            await plane.until(lambda: _warned(plane, "AddressNotInPool"), "a warning")
            assert await _ingress(plane, "same") == await _ingress(plane, "far") == []

    run_virtual(main())


def test_addresses_stay_over_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions(pool=Pool("127.200.79.1-127.200.79.9"))) as plane:
            await _pod(plane, "one")
            for name in ("a", "b", "c"):
                await _service(plane, name)
            before = [(await _address(plane, name), await _local(plane, name)) for name in ("a", "b", "c")]
            await plane.delete(SERVICE, "a")
            await plane.settle(1)
            await plane.stop()
            await plane.start()
            await _service(plane, "d")
            assert await _address(plane, "d") == before[0][0]
            after = [(await _address(plane, name), await _local(plane, name)) for name in ("b", "c")]
            assert after == before[1:]
            await plane.until(lambda: _runs(plane, "one"), "the Pod runs again")
            await plane.settle(1)
            assert await _ask(after[0][0], 6443) == "one"

    run_virtual(main())


def test_a_port_that_is_taken_is_reported_and_taken_over_when_it_is_free(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions(pool=Pool("127.200.80.1"))) as plane:
            with socket.create_server(("127.200.80.1", 6443)):
                await _pod(plane, "one")
                await _service(plane, "web")
                await plane.until(lambda: _warned(plane, "AddressNotAvailable"), "a warning")
                assert await _ingress(plane, "web") == []
            address = await _address(plane, "web")
            assert await _ask(address, 6443) == "one"

    run_virtual(main())


def test_a_deleted_service_does_not_listen(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions()) as plane:
            await _pod(plane, "one")
            await _service(plane, "web", "NodePort")
            address = await _local(plane, "web")
            await plane.settle(1)
            assert await _ask(address, 6443) == "one"
            await plane.delete(SERVICE, "web")
            await plane.settle(1)
            with contextlib.suppress(ConnectionRefusedError):
                await _ask(address, 6443)
                raise AssertionError("it still listens")

    run_virtual(main())


def test_simulated_machines_reach_services_at_addresses_of_their_network(tmp_path: Path) -> None:
    async def main() -> None:
        network = Network()
        machine = network.attach("machine", ["10.0.0.50"])
        async with _plane(tmp_path, ServiceOptions(site=ServiceSite(network))) as plane:
            await _pod(plane, "one")
            await _service(plane, "web")
            address = await _address(plane, "web")
            assert address.startswith("10.240.")
            await plane.settle(1)
            service = await plane.get(SERVICE, "web")
            node_port = service["spec"]["ports"][0]["nodePort"]
            local = await _local(plane, "web")
            for host, port in (
                (address, 6443),
                ("10.240.0.1", node_port),
                (local, 6443),
                (service["spec"]["clusterIP"], 6443),
                ("web.default.svc", 6443),
                ("web.default.svc.cluster.local", 6443),
            ):
                assert await _ask_at(network, machine.name, host, port) == "one", host
            await plane.delete(SERVICE, "web")
            await plane.settle(1)
            with contextlib.suppress(OSError):
                await network.connect(machine.name, address, 6443)
                raise AssertionError("it still answers")

    run_virtual(main())


def test_a_settled_service_writes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions(pool=Pool("127.200.81.1"))) as plane:
            await _pod(plane, "one")
            await _service(plane, "web")
            await _address(plane, "web")
            await plane.settle(7200)  # Events expire after an hour
            before = plane.server.store.revision
            await plane.settle(12 * 3600)
            assert plane.server.store.revision == before

    run_virtual(main())


def test_a_service_of_another_class_is_left_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with _plane(tmp_path, ServiceOptions(pool=Pool("127.200.82.1"))) as plane:
            await _service(plane, "web", loadBalancerClass="example.com/other")
            await plane.settle(5)
            assert await _ingress(plane, "web") == []
            with contextlib.suppress(ApiError):
                body = MergePatch({"spec": {"type": "ClusterIP", "loadBalancerClass": None}})
                await plane.client.patch(SERVICE, Key("default", "web"), body)

    run_virtual(main())
