"""Replicas as processes on a real kube-apiserver: what one that stood still does when it wakes up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

import audit
from conformance.runtime.world import until
from e2e.test_chaos_on_kubernetes import paused
from e2e.test_homeport_on_cluster import CONFIG_MAP, LEASE, NAMESPACE, Replica
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.runtime.shard import TOGETHER
from realkube import RealKube

pytestmark = [pytest.mark.timeout(240)]

ADMINISTRATORS = ["system:masters"]


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    made = RealKube(binaries)
    made.audited = True
    with made:
        yield made


async def written_by(client: HttpClient, key: Key, replica: Replica) -> None:
    pid = str(replica.pid)
    await until(client, CONFIG_MAP, key, lambda found: found["data"].get("writer") == pid)


async def stand_still(kube: RealKube, replica: Replica) -> None:
    """While it waits for the answer to a write: this comes, and the next write would follow it when it wakes up."""
    async with paused(kube, "kube-apiserver"):
        await asyncio.sleep(2)  # it writes at least once a second
        os.kill(replica.pid, signal.SIGSTOP)


async def test_a_replica_that_stood_still_writes_nothing_after_one_of_the_other_mode_took_over(
    kube: RealKube, client: HttpClient, replicas: list[Replica]
) -> None:
    await client.create({"metadata": {"name": "modes"}}, kind=NAMESPACE)
    sheet, lease = Key("modes", "sheet"), Key("modes", "homeport")
    meta = {"name": sheet.name, "namespace": sheet.namespace, "labels": {"sample": "yes"}}
    await client.create({"metadata": meta, "data": {"work": "scribble"}}, kind=CONFIG_MAP)

    def start(user: str, *more: str) -> Replica:
        config = kube.write_kubeconfig(user, kube.issue(user, ADMINISTRATORS))
        common = ("--kubeconfig", str(config), "--namespace", "modes", "--plugin", "sample_controller:install")
        replicas.append(Replica(*common, *more))
        return replicas[-1]

    alone = start("alone")
    await written_by(client, sheet, alone)
    shared = start("shared", "--shards")
    await asyncio.to_thread(shared.until, "controllers: standing by")

    for sleeper, taker in ((alone, shared), (shared, alone)):
        await stand_still(kube, sleeper)
        await written_by(client, sheet, taker)
        os.kill(sleeper.pid, signal.SIGCONT)
        await asyncio.to_thread(sleeper.until, "controllers: crashed (LeaseLost")
        await asyncio.to_thread(sleeper.until, "controllers: standing by")
        holder = (await client.get(LEASE, lease))["spec"]["holderIdentity"]
        assert holder == TOGETHER if taker is shared else f"-{alone.pid}-" in holder
    assert [each.terminate() for each in replicas] == [0, 0]

    writes = audit.writes_of(kube.dir, {"alone", "shared"})
    turns = [user for user, _ in groupby(writes, lambda each: each.user)]
    assert turns == ["alone", "shared", "alone"], "\n".join(map(str, writes[-200:]))
