"""Upgrades that are given up, reverted or skipped: machines that come afterwards still join."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from campaign import sample
from capikit.harness import Harness, harness
from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import yaml
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from homeport.sim.machine.workload.kind import CONFIG_MAP

_VERSIONS = ("v1.29.0", "v1.30.0", "v1.31.0", "v1.32.0")
_CONFIG = Key("kube-system", "kubeadm-config")


async def configured(h: Harness) -> str:
    """The version that a machine which joins now finds."""
    (workload,) = h.fleet.clusters()
    found = await workload.client().get(CONFIG_MAP, _CONFIG)
    return str(yaml.load(found["data"]["ClusterConfiguration"])["kubernetesVersion"])


async def wish(h: Harness, version: str, **more: object) -> None:
    await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"version": version, **more}})


async def joined(h: Harness) -> list[Machine]:
    """Control planes that can be spared one after the other."""
    found = [m for m in await h.machines("one") if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
    whole = [m for m in found if m.status.node_ref is not None and not m.metadata.deletion_timestamp]
    return whole if len(whole) == len(found) else []


# Later than that no Machine runs the old version any more: see the next test.
@pytest.mark.parametrize("seconds", sample([0.0, 0.5, 2.0, 10.0, 40.0], 3))
def test_an_upgrade_is_reverted_at_any_moment_and_the_control_plane_grows(seconds: float) -> None:
    @virtual
    async def run() -> None:
        async with harness(pace=REALISTIC) as h:
            await h.create("one", 1, 1, "v1.30.0")
            await h.steady("one", 1, 1, "v1.30.0")
            await wish(h, "v1.31.0")
            await asyncio.sleep(seconds)
            for machine in await h.machines("one"):
                if machine.spec.version == "v1.31.0" and machine.status.node_ref is None:
                    await h.delete(Machine, machine.metadata.name)
            await wish(h, "v1.30.0", replicas=3)
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"replicas": 2}})
            await h.steady("one", 3, 2, "v1.30.0")
            assert await configured(h) == "v1.30.0"

    run()


@virtual
async def test_an_upgrade_that_is_finished_is_not_taken_back_and_goes_on_when_the_version_is_right() -> None:
    async with harness(pace=REALISTIC) as h:
        await h.create("one", 1, 0, "v1.30.0")
        await h.steady("one", 1, 0, "v1.30.0")
        await wish(h, "v1.31.0")
        await h.steady("one", 1, 0, "v1.31.0")
        before = {machine.metadata.uid for machine in await h.machines("one")}
        await wish(h, "v1.30.0", replicas=3)
        await asyncio.sleep(600)
        assert {machine.metadata.uid for machine in await h.machines("one")} == before
        found = await h.client.get(KubeadmControlPlane, Key("default", "one-cp"))
        rolling = next(each for each in found.status.conditions if each["type"] == "RollingOut")
        assert "a finished upgrade can't be taken back" in rolling["message"]
        await wish(h, "v1.31.0", replicas=3)
        await h.steady("one", 3, 0, "v1.31.0")


@virtual
async def test_the_configuration_is_put_back_when_somebody_else_changes_it() -> None:
    async with harness() as h:
        await h.create("one", 1, 0, "v1.30.0")
        await h.steady("one", 1, 0, "v1.30.0")
        (workload,) = h.fleet.clusters()
        found = await workload.client().get(CONFIG_MAP, _CONFIG)
        text = found["data"]["ClusterConfiguration"].replace("v1.30.0", "v1.33.0").replace("v1beta3", "v1beta4")
        await workload.client().patch(CONFIG_MAP, _CONFIG, MergePatch({"data": {"ClusterConfiguration": text}}))
        assert await configured(h) == "v1.33.0"
        await asyncio.sleep(900)  # it is looked at every 10 minutes, when the control plane is next looked at
        assert await configured(h) == "v1.30.0"
        await workload.client().patch(CONFIG_MAP, _CONFIG, MergePatch({"data": {"ClusterConfiguration": text}}))
        await wish(h, "v1.30.0", replicas=3)
        await h.steady("one", 3, 0, "v1.30.0")


@virtual
async def test_a_new_machine_that_can_never_join_does_not_hold_up_what_comes_after_it() -> None:
    async with harness() as h:
        await h.create("one", 3, 0, "v1.30.0")
        await h.steady("one", 3, 0, "v1.30.0")
        old = [m.metadata.name for m in await h.machines("one")]
        broken = {"kubeadmConfigSpec": {"preKubeadmCommands": ["exit 1"]}}
        await h.patch(KubeadmControlPlane, "one-cp", {"spec": broken})
        await h.until(KubeadmControlPlane, "one-cp", lambda k: k.status.replicas == 4)
        await h.delete(Machine, old[0])
        await h.gone(Machine, old[0])
        mended = {"kubeadmConfigSpec": {"preKubeadmCommands": ["true"]}}
        await h.patch(KubeadmControlPlane, "one-cp", {"spec": mended})
        await h.steady("one", 3, 0, "v1.30.0")


async def steps(h: Harness, target: int) -> list[int]:
    """The minor versions to go through, one at a time, from what control plane machines run to the target."""
    running = {_VERSIONS.index(machine.spec.version) for machine in await joined(h)} | {target}
    if target > min(running):
        return list(range(min(running) + 1, target + 1))
    return list(range(max(max(running) - 1, target), target - 1, -1))


def runs(plane: KubeadmControlPlane, version: str) -> bool:
    status = plane.status
    return status.version == version and status.replicas == status.up_to_date_replicas == status.ready_replicas == 3


@pytest.mark.parametrize("seed", sample(range(5), 1))
def test_versions_come_and_go_while_machines_are_deleted(seed: int) -> None:
    @virtual
    async def run() -> None:
        chance = random.Random(seed)
        async with harness(pace=REALISTIC) as h:
            await h.create("one", 3, 1, _VERSIONS[0])
            await h.steady("one", 3, 1, _VERSIONS[0])
            at = 0
            for _ in range(8):
                await asyncio.sleep(chance.choice((0.0, 0.2, 3.0, 30.0, 90.0, 200.0)))
                match chance.choice(("version", "version", "control plane", "worker", "scale")):
                    case "version":
                        at = min(max(at + chance.choice((-1, 1, 1)), 0), len(_VERSIONS) - 1)
                        await wish(h, _VERSIONS[at])
                    case "control plane":
                        if len(spare := await joined(h)) >= 3:
                            await h.delete(Machine, chance.choice(spare).metadata.name)
                    case "worker":
                        for machine in await h.machines("one"):
                            if "cluster.x-k8s.io/control-plane" not in machine.metadata.labels:
                                await h.delete(Machine, machine.metadata.name)
                    case "scale":
                        await wish(h, _VERSIONS[at], replicas=chance.choice((3, 5)))
            path = await steps(h, at)
            for back in range(at - 1, path[0], -1):  # admission allows one minor version back at a time
                await wish(h, _VERSIONS[back])
            for step in path:  # a skipped minor version is held back until the user takes it after all
                await wish(h, _VERSIONS[step], replicas=3)
                await h.until(KubeadmControlPlane, "one-cp", partial(runs, version=_VERSIONS[step]), 7200)
            version = {"template": {"spec": {"version": _VERSIONS[at]}}}
            await h.patch(MachineDeployment, "one-md-0", {"spec": version})
            await h.steady("one", 3, 1, _VERSIONS[at], timeout=7200)
            assert await configured(h) == _VERSIONS[at]
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 3

    run()
