"""Harvester beside the plane: started when it is needed, kept over restarts, told what to do by options."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from homeport.app.settings import Simulators
from homeport.app.simulation.simulation import Simulation, SimulationError
from homeport.client.config import Config
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key
from homeport.runtime.telemetry.stream import LogStreams
from homeport.sim.harvester.kind import CONFIG_MAP, NODE

NAMED = Key("default", "kept")


@asynccontextmanager
async def simulated(data: Path, **options: object) -> AsyncIterator[tuple[Simulation, LogStreams]]:
    streams = LogStreams()
    simulation = Simulation(data / "sim", Simulators(("harvester",), **options), streams)  # type: ignore[arg-type]
    await simulation.start()
    try:
        yield simulation, streams
    finally:
        await simulation.close()


def config(data: Path) -> Config:
    return load(data / "harvester-kubeconfig.yaml")


async def test_nothing_is_opened_before_the_first_connection(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (simulation, streams):
        database = tmp_path / "sim" / "harvester" / "world.db"
        assert not database.exists()
        assert (tmp_path / "harvester-kubeconfig.yaml").stat().st_mode & 0o777 == 0o600
        async with HttpClient(config(tmp_path)) as client:
            assert len((await client.list(NODE)).items) == 3
        assert database.exists()
        assert simulation.describe()[0].requests > 0
        assert any("/api/v1/nodes" in line.text for line in streams.source("sim-harvester").lines())


async def test_objects_are_kept_until_a_reset(tmp_path: Path) -> None:
    async with simulated(tmp_path), HttpClient(config(tmp_path)) as client:
        await client.create({"metadata": {"name": "kept", "namespace": "default"}}, kind=CONFIG_MAP)
        uids = {node.uid for node in (await client.list(NODE)).items}
    async with simulated(tmp_path), HttpClient(config(tmp_path)) as client:
        assert await client.get(CONFIG_MAP, NAMED)
        assert {node.uid for node in (await client.list(NODE)).items} == uids
    async with simulated(tmp_path, reset=True), HttpClient(config(tmp_path)) as client:
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAP, NAMED)


async def test_a_copy_is_whole_while_the_simulator_runs(tmp_path: Path) -> None:
    async with simulated(tmp_path) as (simulation, _), HttpClient(config(tmp_path)) as client:
        await client.create({"metadata": {"name": "kept", "namespace": "default"}}, kind=CONFIG_MAP)
        await simulation.copy(tmp_path / "copy" / "sim")
        await client.delete(CONFIG_MAP, NAMED)
    async with simulated(tmp_path / "copy"), HttpClient(config(tmp_path / "copy")) as client:
        assert await client.get(CONFIG_MAP, NAMED)


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("faults", "faults: [{effect: {kind: task-hang}}]", "--sim-faults: .*'task-hang' does not apply to harvester"),
        ("world", "nodes: 5", "--sim-world: .*nodes"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_with_its_option(
    tmp_path: Path, option: str, text: str, words: str
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    given = {option: {"harvester": path}}
    with pytest.raises(SimulationError, match=words):
        Simulation(tmp_path / "sim", Simulators(("harvester",), **given), LogStreams())  # type: ignore[arg-type]


async def test_another_world_than_the_one_it_began_with_is_refused(tmp_path: Path) -> None:
    world = tmp_path / "world.yaml"
    world.write_text("nodes: [{name: only, address: 10.20.0.11}]\n")
    async with simulated(tmp_path, world={"harvester": world}), HttpClient(config(tmp_path)) as client:
        assert [node["metadata"]["name"] for node in (await client.list(NODE)).items] == ["only"]
    async with simulated(tmp_path), HttpClient(config(tmp_path)) as client:
        assert len((await client.list(NODE)).items) == 1
    world.write_text("nodes: [{name: other, address: 10.20.0.11}]\n")
    with pytest.raises(SimulationError, match="was created with a different --sim-world"):
        async with simulated(tmp_path, world={"harvester": world}):
            pass


async def test_a_speed_that_only_tasks_have_means_instant(tmp_path: Path) -> None:
    async with simulated(tmp_path, speed="reads:3"):
        pass
    with pytest.raises(SimulationError, match="--speed: 'soon' is not a valid speed"):
        Simulation(tmp_path / "sim", Simulators(("harvester",), speed="soon"), LogStreams())
