"""Upstream's own managers on a real kube-apiserver against our simulators: what serves them is like the real thing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from capikit import guide, upstream
from capikit.foreign import Managers
from capikit.world import WorldProcess
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import yaml
from realkube import RealKube

pytestmark = [pytest.mark.timeout(900)]

CLUSTER = Key("default", guide.NAME)


@pytest.fixture(scope="module")
def world() -> Iterator[WorldProcess]:
    with WorldProcess() as made:
        yield made


@pytest.fixture(scope="module")
def managers(binaries: dict[str, Path] | str, request: pytest.FixtureRequest) -> Iterator[Managers]:
    if not os.environ.get("HOMEPORT_UPSTREAM"):
        pytest.skip("takes minutes: `make upstream` runs it")
    if isinstance(binaries, str):
        pytest.skip(binaries)
    if reason := upstream.lacking("manifests", *upstream.MANAGERS):
        pytest.skip(reason)
    world: WorldProcess = request.getfixturevalue("world")
    with RealKube(binaries) as kube, Managers(kube, proxy=world.proxy, authority=world.authority) as made:
        yield made


@pytest.fixture
async def client(managers: Managers) -> AsyncIterator[HttpClient]:
    async with HttpClient(load(managers.kube.kubeconfig)) as made:
        yield made


async def gone(client: HttpClient) -> None:
    query = Query(namespace="default", fields=f"metadata.name={guide.NAME}")
    async with asyncio.timeout(120), client.watch(Cluster, query, initial_events=True) as events:
        there = False
        async for event in events:
            there = there or event.type in ("ADDED", "MODIFIED")
            if event.type == "DELETED" or (event.initial_events_end and not there):
                return


async def test_the_cluster_of_the_guide_runs_scales_is_upgraded_and_goes(
    managers: Managers, world: WorldProcess, client: HttpClient
) -> None:
    text = "---\n".join(yaml.dump(each) for each in guide.for_upstream(3, 3, world.port))
    applied = managers.kube.kubectl("apply", "-f", "-", stdin=text)
    assert applied.returncode == 0, applied.stderr
    machines = await guide.until_machines(client, guide.all_running(6), 400, managers.logs)
    assert len(world.state()["vms"]) == 6
    assert all(m.status.node_ref is not None for m in machines.values())

    await client.patch(KubeadmControlPlane, guide.CONTROL_PLANE, MergePatch({"spec": {"replicas": 1}}))
    await client.patch(MachineDeployment, guide.WORKERS, MergePatch({"spec": {"replicas": 1}}))
    await guide.until_machines(client, guide.all_running(2), 200, managers.logs)

    await guide.upgrade_control_plane(client)
    await guide.until_machines(client, guide.planes_in_order(1, guide.NEWER), 300, managers.logs)
    await guide.upgrade_workers(client)
    await guide.until_machines(client, guide.in_order(2, guide.NEWER), 300, managers.logs)

    await client.delete(Cluster, CLUSTER)
    await guide.until_machines(client, lambda machines: not machines, 200, managers.logs)
    left = world.state()
    assert left["vms"] == []
    await gone(client)
