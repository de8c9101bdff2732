"""A kubeadm control plane at rest: its static Pods are not watched, and one that breaks is still noticed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capikit.harness import Harness, harness
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import POD
from scenario.capi.look import says, workload

pytestmark = pytest.mark.usefixtures("idle_connections_age")
STATIC = Query(namespace="kube-system", labels="tier=control-plane")
HEALTHY = "ControlPlaneComponentsHealthy"


async def at_rest(h: Harness) -> None:
    await h.steady("one", 1, 0, "v1.30.0")
    await asyncio.sleep(150)
    assert connections(h) == 1


def connections(h: Harness) -> int:
    (found,) = h.fleet.clusters()
    assert found.server.http is not None
    return found.server.http.connections


async def scheduler(h: Harness) -> Any:
    pods = (await workload(h).list(POD, STATIC)).items
    return next(each for each in pods if each.name.startswith("kube-scheduler-"))


async def set_ready(h: Harness, ready: bool) -> float:
    """When that was."""
    pod = await scheduler(h)
    conditions = [
        {**each, "status": str(ready)} if each["type"] == "Ready" else each for each in pod["status"]["conditions"]
    ]
    patch = MergePatch({"status": {"conditions": conditions}})
    await workload(h).patch(POD, Key(pod.namespace, pod.name), patch, subresource="status")
    return h.clock.monotonic()


async def noticed(h: Harness, status: str) -> float:
    await h.until(KubeadmControlPlane, "one-cp", says(HEALTHY, status=status))
    return h.clock.monotonic()


@virtual
async def test_a_static_pod_that_breaks_at_rest_is_noticed_within_a_minute_and_its_recovery_at_once() -> None:
    async with harness() as h:
        await h.create("one", 1, 0)
        await at_rest(h)
        broke = await set_ready(h, False)
        assert await noticed(h, "False") - broke <= 65
        await asyncio.sleep(60)
        mended = await set_ready(h, True)
        assert await noticed(h, "True") - mended <= 5
        await asyncio.sleep(150)
        assert connections(h) == 1


@virtual
async def test_a_static_pod_that_broke_at_rest_is_noticed_by_a_plane_that_starts_again() -> None:
    async with harness() as h:
        await h.create("one", 1, 0)
        await at_rest(h)
        await h.plane.stop()
        await set_ready(h, False)
        h.plane.manager = h.manager()
        began = h.clock.monotonic()
        await h.plane.start()
        assert await noticed(h, "False") - began <= 10
        await set_ready(h, True)
        await noticed(h, "True")
        await at_rest(h)
        broke = await set_ready(h, False)
        assert await noticed(h, "False") - broke <= 65


@virtual
async def test_a_change_of_the_control_plane_at_rest_sees_pods_as_they_are_now() -> None:
    async with harness() as h:
        await h.create("one", 3, 0)
        await h.steady("one", 3, 0, "v1.30.0")
        await asyncio.sleep(150)
        assert connections(h) == 1
        await set_ready(h, False)
        await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": "v1.31.0"}})
        await noticed(h, "False")
        await asyncio.sleep(120)
        assert {each.spec.version for each in await h.machines()} == {"v1.30.0"}
        await set_ready(h, True)
        await h.steady("one", 3, 0, "v1.31.0")
