"""Several simulators side by side: whose options and machines are whose."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from homeport.app import simulators
from homeport.app.settings import SettingsError, Simulators, parse_by_name, parse_names
from homeport.app.simulation.simulation import Simulation, SimulationError
from homeport.runtime.telemetry.stream import LogStreams
from homeport.sim.engine.guest import Machine
from homeport.sim.machine.image import Image

T = TypeVar("T")


def test_every_name_has_its_simulator() -> None:
    assert tuple(each.name for each in simulators.load(simulators.NAMES)) == simulators.NAMES


def test_an_unknown_simulator_is_named_with_the_known_ones() -> None:
    assert parse_names("all") == simulators.NAMES
    with pytest.raises(SettingsError, match="unknown simulator 'vsphere': expected all, or some of prism"):
        parse_names("vsphere")


def test_a_simulator_of_a_plugin_is_named_by_its_module() -> None:
    name = "homeport.sim.prism.simulator:SIMULATOR"  # any Simulator will do
    assert parse_names(f"prism,{name}") == ("prism", name)
    assert [each.name for each in simulators.load([name])] == ["prism"]
    assert parse_by_name("--sim-listen", [f"{name}=127.0.0.1:0"], [name]) == {name: "127.0.0.1:0"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_such_module:SIMULATOR", "--sim 'no_such_module:SIMULATOR': module no_such_module can't be imported"),
        ("homeport.sim.prism.simulator:NAME", "module homeport.sim.prism.simulator has no Simulator NAME"),
    ],
)
def test_a_plugin_without_a_simulator_is_refused(name: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=told):
        Simulation(tmp_path / "sim", Simulators(names=(name,)), LogStreams())


def test_a_plain_value_is_that_of_the_only_simulator() -> None:
    assert parse_by_name("--sim-world", ["w.yaml"], ["prism"]) == {"prism": "w.yaml"}
    assert parse_by_name("--sim-world", ["prism=w.yaml"], ["prism", "other"]) == {"prism": "w.yaml"}
    assert parse_by_name("--sim-world", ["a=b.yaml"], ["prism"]) == {"prism": "a=b.yaml"}


@pytest.mark.parametrize(
    ("values", "names", "told"),
    [
        (["w.yaml"], ["prism", "other"], "several simulators run: expected prism=w.yaml or other=w.yaml"),
        (["prism=w.yaml"], ["other"], "simulator 'prism' is not started"),
        (["prism=a", "prism=b"], ["prism"], "given twice"),
    ],
)
def test_a_value_that_belongs_to_no_simulator_is_refused(values: list[str], names: list[str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        parse_by_name("--sim-world", values, names)


def test_a_world_that_can_not_be_read_names_the_option(tmp_path: Path) -> None:
    world = tmp_path / "w.yaml"
    world.write_text("clusters: 5")
    with pytest.raises(SimulationError, match="--sim-world: "):
        Simulation(tmp_path / "sim", Simulators(world={"prism": world}), LogStreams())


async def test_machines_of_a_simulator_that_does_not_run_are_kept(tmp_path: Path) -> None:
    """Their simulator knows of them; one that runs and does not know its machine has lost it."""
    first = Simulation(tmp_path / "sim", Simulators(), LogStreams())
    await first.start()
    for name, owner in (("lost", "prism"), ("elsewhere", "other")):
        machine = first.fleet.rebuild(name, name, Image("rocky"), owner, "nutanix")
        machine.provisioned = True
    await first.close()
    second = Simulation(tmp_path / "sim", Simulators(), LogStreams())
    await second.start()
    try:
        assert list(second.fleet.machines) == ["elsewhere"]
        assert second.describe()[0].machines == 0
    finally:
        await second.close()


class SlowDisk(ThreadPoolExecutor):
    """Threads of the event loop. The next one that starts waits until it may `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.started = threading.Event(), threading.Event()
        self.slow = True

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(partial(self._run, self.slow, fn), *args, **kwargs)

    def _run(self, slow: bool, fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if slow:
            self.slow = False
            self.started.set()
            self.go.wait(30)
        return fn(*args, **kwargs)


async def test_a_save_that_is_cancelled_does_not_overwrite_a_later_one(tmp_path: Path) -> None:
    """A plane that stops cancels the save that runs, and saves once more."""
    first = Simulation(tmp_path / "sim", Simulators(), LogStreams())
    await first.start()
    disk = SlowDisk()
    for name in ("early", "late"):
        first.fleet.rebuild(name, name, Image("rocky"), "other", "nutanix").provisioned = True
        if name == "early":
            asyncio.get_running_loop().set_default_executor(disk)
            saving = asyncio.create_task(first.save())
            while not disk.started.is_set():  # noqa: ASYNC110 - a thread decides
                await asyncio.sleep(0)
    saving.cancel()
    closing = asyncio.create_task(first.close())
    await asyncio.wait([closing], timeout=0.5)  # it would not wait for the thread if nothing made it
    disk.go.set()
    with pytest.raises(asyncio.CancelledError):
        await saving
    await closing
    disk.shutdown(wait=True)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
    second = Simulation(tmp_path / "sim", Simulators(), LogStreams())
    await second.start()
    try:
        assert list(second.fleet.machines) == ["early", "late"]
    finally:
        await second.close()


async def test_a_console_line_goes_to_the_simulator_that_owns_the_machine(tmp_path: Path) -> None:
    streams = LogStreams()
    simulation = Simulation(tmp_path / "sim", Simulators(), streams)
    await simulation.start()
    try:
        simulation.fleet.powered_on(Machine(ext_id="1", name="vm", cluster="c"))
        await simulation.fleet.settled()
        lines = [line.text for line in streams.source("sim-machine").lines()]
        assert lines
        assert simulation.running["prism"].describe().name == "prism"
    finally:
        await simulation.close()
