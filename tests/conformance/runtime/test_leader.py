"""One leader, never two: processes that are killed, that stand still, and many who want to lead."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conformance.runtime.replica import LOST, TIMING
from conformance.runtime.world import CONFIG_MAP, World, until
from homeport.client.protocol import Key, Query
from homeport.runtime.lease import LEASE, Lease, LeaseLost, LeaseTiming
from homeport.runtime.shard import TABLE_ANNOTATION
from homeport.runtime.sharetable import Table, parse_table
from present import present

TESTS = Path(__file__).resolve().parents[2]


@asynccontextmanager
async def replica(world: World, ns: str, who: str, mode: str) -> AsyncIterator[asyncio.subprocess.Process]:
    source = os.environ.get("PYTHONPATH", "")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "conformance.runtime.replica",
        str(world.kubeconfig()),
        ns,
        who,
        mode,
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, str(TESTS))))},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def sheets(world: World, ns: str, number: int) -> list[Key]:
    """ConfigMaps to be signed."""
    keys = [Key(ns, f"s{n}") for n in range(number)]
    for key in keys:
        meta = {"name": key.name, "namespace": ns, "labels": {"sign": "here"}}
        await world.client.create({"metadata": meta}, kind=CONFIG_MAP)
    return keys


def written_after(number: int) -> Callable[[Any], bool]:
    return lambda obj: int(obj["data"]["n"]) > number


def signed_by(*who: str) -> Callable[[Any], bool]:
    return lambda obj: (obj.get("data") or {}).get("writer") in who


async def test_a_leader_that_is_killed_is_followed_by_the_next(world: World, ns: str) -> None:
    (sheet,) = await sheets(world, ns, 1)
    async with replica(world, ns, "first", "elected") as first:
        await until(world.client, CONFIG_MAP, sheet, signed_by("first"))
        async with replica(world, ns, "second", "elected"):
            await until(
                world.client, LEASE, Key(ns, "replicas"), lambda lease: lease["spec"]["holderIdentity"] == "first"
            )
            loop = asyncio.get_running_loop()
            first.kill()
            killed = loop.time()
            await until(world.client, CONFIG_MAP, sheet, signed_by("second"))
            # Had it started before the kill, one duration; it may have had to start first.
            assert loop.time() - killed < TIMING.duration + 10
    lease = await world.client.get(LEASE, Key(ns, "replicas"))
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_leader_that_stood_still_does_not_write_when_it_wakes_up(world: World, ns: str) -> None:
    (sheet,) = await sheets(world, ns, 1)
    start = (await world.client.list(CONFIG_MAP, Query(namespace=ns))).resource_version
    async with replica(world, ns, "first", "elected") as first:
        await until(world.client, CONFIG_MAP, sheet, signed_by("first"))
        async with replica(world, ns, "second", "elected"):
            first.send_signal(signal.SIGSTOP)
            await until(world.client, CONFIG_MAP, sheet, signed_by("second"))
            first.send_signal(signal.SIGCONT)
            async with asyncio.timeout(20):
                assert await first.wait() == LOST
            found = await world.client.get(CONFIG_MAP, sheet)
            number = int(found["data"]["n"])
            await until(world.client, CONFIG_MAP, sheet, written_after(number + 5))
            end = int((await world.client.get(CONFIG_MAP, sheet)).resource_version)
    assert await writers_of(world, sheet, start, end) == ["first", "second"]


async def writers_of(world: World, key: Key, start: str, end: int) -> list[str]:
    """Of every single write between two revisions, in order, each named once in a row."""
    writers: list[str] = []
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}", resource_version=start)
    async with asyncio.timeout(20), world.client.watch(CONFIG_MAP, query) as events:
        async for event in events:
            writer = (event.object.get("data") or {}).get("writer")
            if writer and writers[-1:] != [writer]:
                writers.append(writer)
            if int(event.resource_version) >= end:
                break
    return writers


async def test_many_candidates_and_never_two_leaders(world: World, ns: str) -> None:
    """Each leads for a while, then gives up, or stands still until its lease has run out."""
    chance = random.Random(7)
    timing = LeaseTiming(1.0, 0.6, 0.05)
    leases = [Lease(world.client, Key(ns, "many"), f"c{n}", timing=timing) for n in range(8)]
    terms: list[str] = []
    enough = asyncio.Event()

    async def lead(lease: Lease) -> None:
        while not enough.is_set():
            await lease.hold()
            held = [each.identity for each in leases if each.held]
            assert held == [lease.identity]
            terms.append(lease.identity)
            if len(terms) >= 10:
                enough.set()
            try:
                async with asyncio.timeout(chance.random() * 0.3):
                    await lease.keep()
            except TimeoutError:
                if chance.random() < 0.7:
                    await lease.release()
            except LeaseLost:
                pass  # how it ends for who stood still
            await asyncio.sleep(chance.uniform(0.2, 1.5))

    async def guard() -> None:
        while True:
            held = [each.identity for each in leases if each.held]
            assert len(held) <= 1, held
            await asyncio.sleep(0.002)

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(guard())
        leading = [group.create_task(lead(lease)) for lease in leases]
        async with asyncio.timeout(40):
            await enough.wait()
        for task in (watching, *leading):
            task.cancel()
    assert len(set(terms)) > 1


async def test_the_keys_of_a_killed_replica_are_taken_over(world: World, ns: str) -> None:
    keys = await sheets(world, ns, 12)
    async with (
        replica(world, ns, "a", "sharded") as first,
        replica(world, ns, "b", "sharded"),
        replica(world, ns, "c", "sharded"),
    ):
        table = await table_of(world, ns, ("a", "b", "c"))
        for key in keys:  # all three have agreed when everybody has its share
            await until(world.client, CONFIG_MAP, key, signed_by(table.owner(str(key))))
        lost = [key for key in keys if table.owner(str(key)) == "a"]
        first.kill()
        table = await table_of(world, ns, ("b", "c"))
        for key in lost:
            await until(world.client, CONFIG_MAP, key, signed_by(table.owner(str(key))))
        # Nobody else ever uses its Lease: another replica removes it.
        async with asyncio.timeout(30 * TIMING.duration):
            while "replicas-a" in (found := await leases(world, ns)):  # noqa: ASYNC110 - it takes several durations
                await asyncio.sleep(0.5)
        assert found == {"replicas", "replicas-b", "replicas-c"}


async def leases(world: World, ns: str) -> set[str]:
    return {each.name for each in (await world.client.list(LEASE, Query(namespace=ns))).items}


async def test_a_replica_that_stood_still_writes_nothing_of_its_share_when_it_wakes_up(world: World, ns: str) -> None:
    keys = await sheets(world, ns, 10)  # so many that each replica has some, whatever the namespace is called
    async with replica(world, ns, "a", "sharded") as first, replica(world, ns, "b", "sharded"):
        table = await table_of(world, ns, ("a", "b"))
        for key in keys:
            await until(world.client, CONFIG_MAP, key, signed_by(table.owner(str(key))))
        start = (await world.client.list(CONFIG_MAP, Query(namespace=ns))).resource_version
        first.send_signal(signal.SIGSTOP)
        await table_of(world, ns, ("b",))
        taken = [key for key in keys if table.owner(str(key)) == "a"]
        assert taken
        for key in taken:
            await until(world.client, CONFIG_MAP, key, signed_by("b"))
        first.send_signal(signal.SIGCONT)
        async with asyncio.timeout(20):
            assert await first.wait() == LOST
        ends = {}
        for key in taken:  # it is still written to, and by the other one
            number = int((await world.client.get(CONFIG_MAP, key))["data"]["n"])
            await until(world.client, CONFIG_MAP, key, written_after(number))
            ends[key] = int((await world.client.get(CONFIG_MAP, key)).resource_version)
    for key, end in ends.items():
        assert await writers_of(world, key, start, end) in (["b"], ["a", "b"])


async def table_of(world: World, ns: str, members: tuple[str, ...]) -> Table:
    """The table of just these members, once there is one."""

    def read(lease: Any) -> Table | None:
        return parse_table((lease.metadata.get("annotations") or {}).get(TABLE_ANNOTATION, ""))

    def holds(lease: Any) -> bool:
        found = read(lease)
        return found is not None and found.members == members

    await until(world.client, LEASE, Key(ns, "replicas"), holds)
    return present(read(await world.client.get(LEASE, Key(ns, "replicas"))))
