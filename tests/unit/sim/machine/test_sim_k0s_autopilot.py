from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.machine.k0s import release
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.workload.k0s.definition import CONTROL_NODE, PLAN
from unit.sim.machine.k0s_kit import K0S_IMAGE, controller_data, controller_token, k0s_token, worker_data
from unit.sim.machine.sim_kit import PACE, Sim, simulation

NEW = "v1.31.6+k0s.0"


def plan(
    controllers: list[str],
    workers: list[str],
    *,
    version: str = NEW,
    url: str = "",
    platform: str = "linux-amd64",
    **more: Any,
) -> dict[str, Any]:
    source = {"url": url or release.download_url(version), **more}

    def target(names: list[str]) -> dict[str, Any]:
        return {"discovery": {"static": {"nodes": names}}, "limits": {"concurrent": 1}}

    update = {
        "version": version,
        "platforms": {platform: source},
        "targets": {"controllers": target(controllers), "workers": target(workers)},
    }
    spec = {"id": "id123", "timestamp": "now", "commands": [{"k0supdate": update}]}
    return {"metadata": {"name": "autopilot"}, "spec": spec}


async def cluster_up(sim: Sim, controllers: int = 3, workers: int = 1) -> None:
    await sim.boot("cp-0", controller_data(sim.secrets), image=K0S_IMAGE)
    for number in range(1, controllers):
        token = await controller_token(sim)
        await sim.boot(f"cp-{number}", controller_data(None, token=token), image=K0S_IMAGE)
    for number in range(workers):
        data = worker_data(await k0s_token(sim), f"md-{number}", kubelet="")
        await sim.boot(f"md-{number}", data, image=K0S_IMAGE)
    assert len(sim.cluster.etcd.members) == controllers


async def run_plan(sim: Sim, body: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
    await sim.cluster.client().create(body, kind=PLAN)
    await asyncio.sleep(seconds)
    return await status(sim)


async def status(sim: Sim) -> dict[str, Any]:
    found = await sim.cluster.client().get(PLAN, Key("", "autopilot"))
    return dict(found.get("status") or {})


async def versions(sim: Sim) -> set[str]:
    nodes = (await sim.cluster.client().list(CONTROL_NODE)).items
    return {node["status"]["k0sVersion"] for node in nodes}


def states(found: dict[str, Any], kind: str) -> dict[str, str]:
    return {each["name"]: each["state"] for each in found["commands"][0]["k0supdate"][kind]}


@virtual
async def test_a_plan_upgrades_controllers_and_then_workers() -> None:
    async with simulation() as sim:
        await cluster_up(sim)
        sha = hashlib.sha256(release.binary(NEW)).hexdigest()
        found = await run_plan(sim, plan(["cp-0", "cp-1", "cp-2"], ["md-0"], sha256=sha))
        assert found["state"] == "Completed"
        assert states(found, "controllers") == {f"cp-{number}": "SignalCompleted" for number in range(3)}
        assert states(found, "workers") == {"md-0": "SignalCompleted"}
        assert await versions(sim) == {NEW}
        assert sim.cluster.version() == "v1.31.6+k0s"
        node = await sim.node("md-0")
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.6+k0s"
        assert not node["spec"].get("unschedulable")


@virtual
async def test_controllers_restart_one_at_a_time_and_quorum_is_never_lost() -> None:
    async with simulation(Pace(kubelet=8.0, poll=PACE.poll, patience=PACE.patience)) as sim:
        await cluster_up(sim, workers=0)
        fewest = 3
        await sim.cluster.client().create(plan(["cp-0", "cp-1", "cp-2"], []), kind=PLAN)
        for _ in range(400):
            await asyncio.sleep(0.1)
            fewest = min(fewest, len(sim.cluster.serving()))
        assert fewest == 2
        assert (await status(sim))["state"] == "Completed"


@virtual
async def test_targets_that_are_upgraded_already_are_left_alone() -> None:
    async with simulation() as sim:
        await cluster_up(sim, 1, 0)
        found = await run_plan(sim, plan(["cp-0"], [], version="v1.31.5+k0s.0", url="https://github.com/missing"))
        assert found["state"] == "Completed"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"version": "v1.31.99+k0s.0"}, "download failed: The requested URL returned error: 404"),
        ({"sha256": "00" * 32}, f"hash mismatch: expected {'00' * 32}"),
    ],
)
def test_a_plan_fails_when_the_binary_can_not_be_had(more: dict[str, Any], words: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            await cluster_up(sim)
            found = await run_plan(sim, plan(["cp-0", "cp-1", "cp-2"], [], **more))
            assert found["state"] == "ApplyFailed"
            assert list(states(found, "controllers").values()).count("SignalApplyFailed") == 1
            assert await versions(sim) == {"v1.31.5+k0s.0"}
            assert words in "".join(sim.console(f"cp-{number}") for number in range(3))

    run()


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (plan(["cp-0", "cp-9"], []), {"cp-0": "SignalPending", "cp-9": "SignalMissingNode"}),
        (plan(["cp-0"], [], platform="linux-arm64"), {"cp-0": "SignalMissingPlatform"}),
    ],
)
def test_a_plan_with_targets_that_are_not_there_does_nothing(body: dict[str, Any], state: dict[str, str]) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            await cluster_up(sim, 1, 0)
            found = await run_plan(sim, body)
            assert found["state"] == "IncompleteTargets"
            assert states(found, "controllers") == state
            assert await versions(sim) == {"v1.31.5+k0s.0"}

    run()


@virtual
async def test_a_plan_waits_for_a_controller_that_is_off() -> None:
    async with simulation() as sim:
        await cluster_up(sim, workers=0)
        sim.power_off("cp-2")
        found = await run_plan(sim, plan(["cp-2", "cp-0"], []))
        assert found["state"] == "SchedulableWait"
        assert states(found, "controllers") == {"cp-2": "SignalSent", "cp-0": "SignalPending"}
        await sim.boot("cp-2", again=True, image=K0S_IMAGE)
        await asyncio.sleep(30)
        assert (await status(sim))["state"] == "Completed"
        assert sim.cluster.version() == "v1.31.5+k0s"  # cp-1 was not among the targets


@virtual
async def test_a_plan_finds_its_workers_by_their_labels() -> None:
    async with simulation() as sim:
        await cluster_up(sim, 1, 2)
        body = plan(["cp-0"], [])
        discovery = {"selector": {"labels": "k0smotron.io/machine-name=md-1"}}
        body["spec"]["commands"][0]["k0supdate"]["targets"]["workers"]["discovery"] = discovery
        found = await run_plan(sim, body)
        assert found["state"] == "Completed"
        assert states(found, "workers") == {"md-1": "SignalCompleted"}


@virtual
async def test_a_second_plan_follows_after_the_first_is_deleted() -> None:
    async with simulation() as sim:
        await cluster_up(sim, 1, 0)
        await run_plan(sim, plan(["cp-0"], []))
        client = sim.cluster.client()
        await client.delete(PLAN, Key("", "autopilot"))
        body = plan(["cp-0"], [], version="v1.32.1+k0s.0")
        body["spec"]["id"] = "second"
        assert (await run_plan(sim, body))["state"] == "Completed"
        assert await versions(sim) == {"v1.32.1+k0s.0"}
        patch = MergePatch({"metadata": {"annotations": {"k0sproject.io/autopilot-signal-data": "nonsense"}}})
        await client.patch(CONTROL_NODE, Key("", "cp-0"), patch)
        await asyncio.sleep(5)
        assert await versions(sim) == {"v1.32.1+k0s.0"}
