"""A plane with a simulated site that is stopped and started, or restored elsewhere: its clusters go on changing."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.capi.remote.workload import NODE
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(300)]

NAME = "harbour"
_SECRET = Resource("", "v1", "Secret", "secrets")
_TEMPLATE = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates")
_SECONDS = 90.0


class Plane:
    """Processes of `homeport` on one data directory."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def homeport(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=90)

    async def done(self, *arguments: str) -> str:
        done = await asyncio.to_thread(self.homeport, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def up(self) -> None:
        await self.done("up", "--listen", "127.0.0.1:0", "--detach", "--sim")

    async def restart(self) -> None:
        await self.done("down")
        await self.up()

    def kill(self) -> None:
        os.kill(json.loads((self.data / "run.json").read_text())["pid"], signal.SIGKILL)

    @asynccontextmanager
    async def user(self) -> AsyncIterator[User]:
        client = HttpClient(kubeconfig.load(self.data / "kubeconfig"))
        try:
            yield User(client)
        finally:
            await client.close()


class User:
    def __init__(self, client: HttpClient) -> None:
        self.client = client

    async def create(self, objects: list[dict[str, Any]]) -> None:
        for body in objects:
            group, _, version = body["apiVersion"].rpartition("/")
            plural = "nutanixmachinetemplates" if body["kind"].endswith("Template") else f"{body['kind'].lower()}s"
            plural = "kubeadmconfigtemplates" if body["kind"] == "KubeadmConfigTemplate" else plural
            await self.client.create(body, kind=Resource(group, version, body["kind"], plural))

    async def patch(self, kind: Any, name: str, spec: dict[str, Any]) -> None:
        await self.client.patch(kind, Key("default", name), MergePatch({"spec": spec}))

    async def until(self, kind: Any, name: str, holds: Callable[[Any], bool]) -> Any:
        query = Query(namespace="default", fields=f"metadata.name={name}")
        shown: Any = None
        try:
            async with asyncio.timeout(_SECONDS), self.client.watch(kind, query, initial_events=True) as events:
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED"):
                        shown = event.object
                        if holds(shown):
                            return shown
        except TimeoutError:
            machines = [(m.metadata.name, m.status.phase) for m in (await self.client.list(Machine)).items]
            raise AssertionError(f"{name} did not become so in {_SECONDS} s: {shown}\n{machines}") from None
        raise AssertionError("the watch ended")

    async def available(self, control_planes: int, workers: int, version: str) -> None:
        await self.until(KubeadmControlPlane, f"{NAME}-kcp", lambda k: _settled(k, control_planes))
        await self.until(MachineDeployment, f"{NAME}-md-0", lambda m: _settled(m, workers))
        await self.until(Cluster, NAME, lambda c: condition.is_true(c.status.conditions, "Available"))
        machines = (await self.client.list(Machine)).items
        assert {(m.status.phase, m.spec.version) for m in machines} == {("Running", version)}
        assert len(machines) == control_planes + workers

    @asynccontextmanager
    async def workload(self) -> AsyncIterator[HttpClient]:
        secret = await self.client.get(_SECRET, Key("default", f"{NAME}-kubeconfig"))
        content = base64.b64decode(secret["data"]["value"])
        client = HttpClient(kubeconfig.resolve(kubeconfig.merge([kubeconfig.parse(content, Path("workload"))])))
        try:
            yield client
        finally:
            await client.close()


def _settled(obj: Any, replicas: int) -> bool:
    s = obj.status
    counted = (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)
    return bool(counted == (replicas,) * 4 and (s.observed_generation or 0) >= obj.metadata.generation)


@pytest.fixture
def planes(tmp_path: Path) -> Iterator[Callable[[str], Plane]]:
    made: list[Plane] = []

    def make(name: str) -> Plane:
        made.append(Plane(tmp_path / name))
        return made[-1]

    yield make
    for plane in made:
        plane.homeport("down")


async def _upgrade(user: User, version: str) -> None:
    """As the guide says: templates with the image, then the control plane, then the workers."""
    image = {"image": {"type": "name", "name": f"ubuntu-22.04-kube-{version}"}}
    for old, new in ((f"{NAME}-cp-mt", f"{NAME}-cp-new"), (f"{NAME}-worker-mt", f"{NAME}-worker-new")):
        found = await user.client.get(_TEMPLATE, Key("default", old))
        spec = {**found["spec"]["template"]["spec"], **image}
        await user.create([manifest.template(new, spec)])
    ref = {"name": f"{NAME}-cp-new"}
    await user.patch(
        KubeadmControlPlane,
        f"{NAME}-kcp",
        {"version": version, "machineTemplate": {"spec": {"infrastructureRef": ref}}},
    )
    await user.until(KubeadmControlPlane, f"{NAME}-kcp", lambda k: _settled(k, 1))
    spec = {"version": version, "infrastructureRef": {"name": f"{NAME}-worker-new"}}
    await user.patch(MachineDeployment, f"{NAME}-md-0", {"template": {"spec": spec}})


async def _change_everything(user: User) -> None:
    """Scale, roll, upgrade: each needs machines that are made after the restart."""
    await user.available(1, 1, manifest.VERSION)
    await user.patch(MachineDeployment, f"{NAME}-md-0", {"replicas": 2})
    await user.available(1, 2, manifest.VERSION)
    await user.patch(KubeadmControlPlane, f"{NAME}-kcp", {"rollout": {"after": "2026-01-01T00:00:00Z"}})
    await _upgrade(user, "v1.29.0")
    await user.available(1, 2, "v1.29.0")


async def test_after_a_restart_clusters_scale_roll_and_upgrade(planes: Callable[[str], Plane]) -> None:
    plane = planes("data")
    await plane.up()
    async with plane.user() as user:
        await user.create(manifest.cluster_objects(NAME, 1, 1))
        await user.available(1, 1, manifest.VERSION)
    await plane.restart()
    async with plane.user() as user:
        await _change_everything(user)


async def test_a_plane_that_is_killed_while_a_cluster_scales_loses_no_machine(planes: Callable[[str], Plane]) -> None:
    plane = planes("data")
    await plane.up()
    async with plane.user() as user:
        await user.create(manifest.cluster_objects(NAME, 1, 1))
        await user.available(1, 1, manifest.VERSION)
        await user.patch(MachineDeployment, f"{NAME}-md-0", {"replicas": 3})
        await user.until(MachineDeployment, f"{NAME}-md-0", lambda m: m.status.replicas == 3)
        before = {m.metadata.name for m in (await user.client.list(Machine)).items}
        for name in before:
            await user.until(Machine, name, lambda m: m.status.initialization.infrastructure_provisioned)
    plane.kill()
    await plane.up()
    async with plane.user() as user:
        await user.available(1, 3, manifest.VERSION)
        assert {m.metadata.name for m in (await user.client.list(Machine)).items} == before
        async with user.workload() as workload:
            assert {node["metadata"]["name"] for node in (await workload.list(NODE)).items} == before


async def test_a_backup_that_is_restored_beside_the_first_plane_has_a_site_of_its_own(
    planes: Callable[[str], Plane], tmp_path: Path
) -> None:
    first, second = planes("first"), planes("second")
    archive = str(tmp_path / "plane.backup")
    await first.up()
    async with first.user() as user:
        await user.create(manifest.cluster_objects(NAME, 1, 1))
        await user.available(1, 1, manifest.VERSION)
    await first.done("backup", archive)
    assert sorted(path.name for path in first.data.glob("backup-*")) == []
    await second.done("restore", archive)
    assert (second.data / "sim" / "prism" / "world.json").stat().st_mode & 0o077 == 0
    await second.up()  # the port of the first one's proxy is taken
    async with second.user() as user:
        await _change_everything(user)
        async with user.workload() as workload:
            assert len((await workload.list(NODE)).items) == 3
    async with first.user() as user:
        await user.available(1, 1, manifest.VERSION)
        async with user.workload() as workload:
            assert len((await workload.list(NODE)).items) == 2


async def test_a_restore_leaves_a_site_that_is_there_as_it_is(planes: Callable[[str], Plane], tmp_path: Path) -> None:
    plane = planes("data")
    archive = str(tmp_path / "plane.backup")
    await plane.up()
    await plane.done("backup", archive)
    async with plane.user() as user:
        await user.create(manifest.cluster_objects(NAME, 1, 1))
        await user.available(1, 1, manifest.VERSION)
    await plane.done("down")
    await plane.done("backup", archive, "--force")  # also when the plane is down
    world = json.loads((plane.data / "sim" / "prism" / "world.json").read_bytes())
    assert "the simulators' state" in await plane.done("restore", archive)
    assert json.loads((plane.data / "sim" / "prism" / "world.json").read_bytes()) == world
    await plane.up()
    async with plane.user() as user:
        await user.available(1, 1, manifest.VERSION)


async def test_orphans_of_a_restored_backup_are_listed_adopted_and_removed_from_the_command_line(
    planes: Callable[[str], Plane], tmp_path: Path
) -> None:
    plane = planes("data")
    archive = str(tmp_path / "plane.backup")
    await plane.up()
    async with plane.user() as user:
        await user.create(manifest.cluster_objects(NAME, 1, 1))
        await user.available(1, 1, manifest.VERSION)
        await plane.done("backup", archive)
        known = {each.metadata.name for each in (await user.client.list(Machine)).items}
        await user.patch(MachineDeployment, f"{NAME}-md-0", {"replicas": 3})
        await user.available(1, 3, manifest.VERSION)
        adopted, removed = sorted({each.metadata.name for each in (await user.client.list(Machine)).items} - known)
    await plane.done("down")
    await plane.done("restore", archive)
    await plane.up()
    async with plane.user() as user:
        await user.until(Cluster, NAME, lambda c: adopted in _message(c, "NoOrphanedMachines"))
        await user.until(Cluster, NAME, lambda c: "is Node" in _message(c, "NoOrphanedMachines"))
        listed = await plane.done("orphans", "list", NAME)
        rows = {line.split()[0]: line.split() for line in listed.splitlines()}
        assert [rows[name][3:] for name in (adopted, removed)] == [[n, "worker", "v1.28.0"] for n in (adopted, removed)]
        assert "next: homeport orphans adopt" in listed

        planned = await plane.done("orphans", "adopt", NAME, adopted, "--dry-run")
        assert f"create Machine {adopted} (dry run)" in planned
        assert {each.metadata.name for each in (await user.client.list(Machine)).items} == known
        assert f"create Machine {adopted}" in await plane.done("orphans", "adopt", NAME, adopted)
        await user.available(1, 2, manifest.VERSION)
        assert {each.metadata.name for each in (await user.client.list(Machine)).items} == known | {adopted}

        refused = await asyncio.to_thread(plane.homeport, "orphans", "remove", NAME, removed, "--yes")
        assert refused.returncode != 0
        assert "--force" in refused.stderr
        again = await asyncio.to_thread(plane.homeport, "orphans", "remove", NAME, adopted, "--force", "--yes")
        assert "is not an orphan" in again.stderr
        shown = await plane.done("orphans", "remove", NAME, removed, "--force", "--dry-run")
        assert f"VM {removed}" in shown
        await plane.done("orphans", "remove", NAME, removed, "--force", "--yes")
        await user.until(Cluster, NAME, lambda c: removed not in _message(c, "NoOrphanedMachines"))
        await user.available(1, 2, manifest.VERSION)


def _message(cluster: Any, kind: str) -> str:
    found = condition.find(cluster.status.conditions, kind)
    return str(found["message"]) if found is not None else ""
