"""A plane whose controllers run in several processes: workers and the plane itself are killed, clusters go on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.test_restart import NAME, Plane
from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(300)]


class Crew(Plane):
    async def up(self) -> None:
        await self.done("up", "--listen", "127.0.0.1:0", "--detach", "--sim", "prism", "--workers", "2")

    def workers(self) -> list[int]:
        """Their process numbers."""
        plane = json.loads((self.data / "run.json").read_text())["pid"]
        return [pid for pid in _children(plane) if _is_worker(pid)]

    async def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.done("status", "-o", "json"))
        return found

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while not holds(found := await self.status()):  # noqa: ASYNC110  (another process)
                await asyncio.sleep(0.5)
        return found


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_worker(pid: int) -> bool:
    try:
        return "homeport.app.worker.run" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def _parts(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in found["parts"] if each["name"].startswith("worker ")}


def _all_run(found: dict[str, Any]) -> bool:
    parts = _parts(found)
    return len(parts) == 2 and all(each["state"] == "running" for each in parts.values())


def _health(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["name"], each["health"]) for each in found["clusters"]]


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    made = Crew(tmp_path / "data")
    yield made
    made.homeport("down")


async def test_a_cluster_grows_while_workers_and_the_plane_are_killed(crew: Crew) -> None:
    await crew.up()
    await crew.until(_all_run)
    async with crew.user() as user:
        await user.create(manifest.cluster_objects(NAME, 1, 1))
        await user.available(1, 1, manifest.VERSION)
        await user.patch(MachineDeployment, f"{NAME}-md-0", {"replicas": 3})
        for pid in crew.workers():
            os.kill(pid, signal.SIGKILL)
        await user.available(1, 3, manifest.VERSION)
    # A worker that has just started may report the rollout again for a moment.
    found = await crew.until(lambda each: _all_run(each) and _health(each) == [(NAME, "Available")])
    assert [each["crashes"] for each in _parts(found).values()] == [1, 1]
    assert all("killed by signal 9" in each["error"] for each in _parts(found).values())

    before = crew.workers()
    crew.kill()
    async with asyncio.timeout(10):
        while any(_is_worker(pid) for pid in before):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await crew.up()
    async with crew.user() as user:
        machines = {m.metadata.uid for m in (await user.client.list(Machine)).items}
        await user.patch(MachineDeployment, f"{NAME}-md-0", {"replicas": 4})
        await user.available(1, 4, manifest.VERSION)
        assert machines < {m.metadata.uid for m in (await user.client.list(Machine)).items}
