"""A plane is restored from a backup that is older than its clusters: nothing that runs is ever removed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

import orjson
import pytest

from campaign import CAMPAIGN
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.app.orphan import adoption
from homeport.app.orphan import request as orphan
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Stale, Status
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
PLANE, DEPLOYMENT = f"{NAME}-kcp", f"{NAME}-md-0"
WHILE = 3600.0  # several times as long as any patience


def vms(site: Site) -> set[str]:
    return {vm.name for vm in site.vms()}


def members(site: Site) -> set[str]:
    (workload,) = site.fleet.clusters()
    return {each.name for each in workload.etcd.members.values()}


@virtual
async def test_machines_that_are_newer_than_the_backup_live_on_and_are_reported() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        backup = site.backup()
        await site.patch(KubeadmControlPlane, PLANE, {"spec": {"replicas": 3}})
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 2}})
        await site.running(NAME, 3, 2)
        before, etcd = vms(site), members(site)
        await site.restore(backup)
        known = {each.metadata.name for each in await site.list(Machine)}
        newer = before - known
        assert len(newer) == 3
        words = (*newer, "is Node", f"homeport orphans list {NAME} -n default")
        await site.condition(NutanixCluster, NAME, "NoOrphanedMachines", "False", *words, timeout=1200)
        await site.condition(Cluster, NAME, "NoOrphanedMachines", "False", *words, timeout=60)
        await asyncio.sleep(WHILE)
        assert before <= vms(site)
        assert etcd <= members(site)
        await site.condition(KubeadmControlPlane, PLANE, "EtcdClusterHealthy", "False", "has no Machine and answers")
        await site.condition(Cluster, NAME, "Available", "True")


@virtual
async def test_machines_that_replaced_those_of_the_backup_live_on() -> None:
    """Every Machine of the backup is gone; every Node is one that the plane does not know."""
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        backup, old = site.backup(), vms(site)
        await asyncio.sleep(60)
        after = {"spec": {"rollout": {"after": rfc3339(site.clock.now())}}}
        await site.patch(KubeadmControlPlane, PLANE, after)
        await site.patch(MachineDeployment, DEPLOYMENT, after)
        await site.until(
            KubeadmControlPlane, PLANE, lambda k: k.status.replicas == 1 and not vms(site) & old, 3600, what="rolled"
        )
        await site.running(NAME, 1, 1)
        new, etcd = vms(site), members(site)
        await site.restore(backup)
        await asyncio.sleep(WHILE)
        assert new <= vms(site)
        assert etcd <= members(site)


@virtual
async def test_a_cluster_that_is_newer_than_the_backup_is_not_initialized_a_second_time() -> None:
    async with nutanix_site() as site:
        objects = manifest.cluster_objects(NAME, 1, 0)
        await site.have(*(each for each in objects if each["kind"] != "KubeadmControlPlane"))
        await site.condition(NutanixCluster, NAME, "ReferencesResolved", "False", "WaitingForTemplates", PLANE)
        backup = site.backup()
        await site.have(*(each for each in objects if each["kind"] == "KubeadmControlPlane"))
        await site.running(NAME, 1)
        before = vms(site)
        await site.restore(backup)
        await site.have(*(each for each in objects if each["kind"] == "KubeadmControlPlane"))
        await asyncio.sleep(WHILE / 2)
        assert vms(site) == before
        (waiting,) = await site.list(NutanixMachine)
        await site.condition(NutanixMachine, waiting.metadata.name, "Ready", "False", "not initialized a second time")


@pytest.mark.parametrize("v4", [True, False], ids=["v4", "v3"])
def test_a_read_that_lags_behind_is_no_proof_that_a_cluster_is_new(v4: bool) -> None:
    """The category of the cluster is there, with its VM in it, and Prism Central answers once that it is not."""

    @virtual
    async def run() -> None:
        async with nutanix_site(v4=v4) as site:
            objects = manifest.cluster_objects(NAME, 1, 0)
            await site.have(*(each for each in objects if each["kind"] != "KubeadmControlPlane"))
            await site.condition(NutanixCluster, NAME, "ReferencesResolved", "False", "WaitingForTemplates", PLANE)
            backup = site.backup()
            await site.have(*(each for each in objects if each["kind"] == "KubeadmControlPlane"))
            await site.running(NAME, 1)
            before = vms(site)
            route = "/api/prism/*/config/categories" if v4 else "/api/nutanix/v3/categories/*/*"
            site.fault(Stale(seconds=1e6), times=1, method="GET", route=route)
            await site.restore(backup)
            await site.have(*(each for each in objects if each["kind"] == "KubeadmControlPlane"))
            await asyncio.sleep(WHILE / 2)
            assert vms(site) == before
            (waiting,) = await site.list(NutanixMachine)
            await site.condition(NutanixMachine, waiting.metadata.name, "Ready", "False", "not initialized a second")

    run()


@virtual
async def test_a_member_of_etcd_whose_machine_is_gone_is_removed_once_the_provider_has_said_so() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 0))
        await site.running(NAME, 1)
        backup = site.backup()
        await site.patch(KubeadmControlPlane, PLANE, {"spec": {"replicas": 3}})
        await site.running(NAME, 3)
        await site.restore(backup)
        known = {each.metadata.name for each in await site.list(Machine)}
        dead, alive = sorted(members(site) - known)
        site.prism.machines.delete(next(vm for vm in site.vms() if vm.name == dead), "admin")
        site.fault(Status(503))
        await asyncio.sleep(WHILE)
        assert members(site) == known | {alive, dead}  # a provider that does not answer proves nothing
        site.clear_faults()
        await asyncio.sleep(WHILE)
        assert members(site) == known | {alive}
        assert vms(site) == known | {alive}
        assert await site.events("EtcdMemberRemoved")


async def agree(site: Site) -> None:
    """Machines and VMs are the same machines, and all run."""
    machines = await site.list(Machine)
    assert {each.metadata.name for each in machines} == vms(site)
    assert {each.status.phase for each in machines} == {"Running"}


@virtual
async def test_adopted_machines_are_as_if_they_had_never_been_lost() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        backup = site.backup()
        await site.patch(KubeadmControlPlane, PLANE, {"spec": {"replicas": 3}})
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 2}})
        await site.running(NAME, 3, 2)
        before, made = vms(site), list(site.created)
        await site.restore(backup)
        await site.condition(NutanixCluster, NAME, "NoOrphanedMachines", "False", "is Node", timeout=1200)
        key = Key("default", NAME)
        listed = await orphan.look(site.client, key)
        assert {each.role.node for each in listed if each.role} == {each.owned.name for each in listed}
        with pytest.raises(orphan.Refused, match="use --force"):
            await orphan.removable(site.client, key, [listed[0].owned.name], force=False)
        planned = await adoption.adopt(site.client, key, adoption.AdoptionRequest(), dry_run=True)
        assert len(await site.list(Machine)) == 2
        assert await adoption.adopt(site.client, key, adoption.AdoptionRequest(), dry_run=False) == planned
        assert sum(line.startswith("create Machine ") for line in planned) == 3
        await site.running(NAME, 3, 2)
        await asyncio.sleep(WHILE / 2)
        await agree(site)
        assert (vms(site), site.created) == (before, made)
        await site.condition(Cluster, NAME, "NoOrphanedMachines", "True", timeout=1200)
        # They are managed like all others.
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 1}})
        await site.running(NAME, 3, 1)
        await agree(site)


class Dying:
    """A client whose process ends at one of its writes: by kill -9, or by a keyboard interrupt."""

    def __init__(self, client: Any, writes: int, error: type[BaseException], *, killed: bool) -> None:
        self._client, self._left, self._error, self._killed = client, writes, error, killed

    def __getattr__(self, name: str) -> Any:
        if name not in ("create", "patch", "delete"):
            return getattr(self._client, name)
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._killed):
            raise self._error
        return getattr(self._client, name)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("writes", [4, 6, 8])
@pytest.mark.parametrize("killed", [True, False])
def test_an_adoption_that_ends_in_the_middle_costs_no_machine_and_can_be_repeated(writes: int, killed: bool) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects(NAME, 1, 1))
            await site.running(NAME, 1, 1)
            backup = site.backup()
            await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 3}})
            await site.running(NAME, 1, 3)
            before = vms(site)
            await site.restore(backup)
            key, error = Key("default", NAME), Killed if killed else asyncio.CancelledError
            await site.condition(NutanixCluster, NAME, "NoOrphanedMachines", "False", "is Node", timeout=1200)
            client: Any = Dying(site.client, writes, error, killed=killed)
            with contextlib.suppress(error):
                await adoption.adopt(client, key, adoption.AdoptionRequest(), dry_run=False)
            if killed:
                await site.patch(Cluster, NAME, {"spec": {"paused": None}})
            await asyncio.sleep(WHILE / 2)
            assert before <= vms(site)
            await adoption.adopt(site.client, key, adoption.AdoptionRequest(), dry_run=False)
            await site.condition(Cluster, NAME, "NoOrphanedMachines", "True", timeout=10)
            await settled(site, KubeadmControlPlane, PLANE)
            await settled(site, MachineDeployment, DEPLOYMENT)
            await asyncio.sleep(WHILE / 2)
            assert before <= vms(site)
            await agree(site)

    run()


@virtual
async def test_a_vm_whose_cluster_can_not_be_asked_is_removed_by_force_alone() -> None:
    """The Cluster is deleted after the restore, and its control plane with it: nothing can tell what the VM is."""
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        backup, old = site.backup(), vms(site)
        await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": 2}})
        await site.running(NAME, 1, 2)
        (newer,) = vms(site) - old
        await site.restore(backup)
        await site.delete(Cluster, NAME)
        await site.condition(
            NutanixCluster, NAME, "Ready", "False", newer, "does not report whether it uses", timeout=1800
        )
        assert vms(site) == {newer}
        key = Key("default", NAME)
        (found,) = await orphan.look(site.client, key)
        with pytest.raises(orphan.Refused, match="use --force"):
            await orphan.removable(site.client, key, [newer], force=False)
        with pytest.raises(orphan.Refused, match="was kept"):  # whoever asks the controllers past the command
            await orphan.remove(site.client, key, [found], force=False)
        assert vms(site) == {newer}
        await orphan.remove(site.client, key, [found], force=True)
        await site.gone(Cluster, NAME)
        assert not vms(site)


# -- the campaign --------------------------------------------------------------------------------------------------

SEEDS = range(16) if CAMPAIGN else range(1)
VERSIONS = ("v1.28.0", "v1.29.0")
KEY = Key("default", NAME)


class Guard:
    """Looks at every VM that goes: was it a Node or a member of etcd that nobody asked to go?"""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.harm: list[str] = []
        self._known = vms(site)
        self._record = site.prism.journal.on_entry
        site.prism.journal.on_entry = self._look

    def _look(self, entry: Any) -> None:
        self._record(entry)
        gone, self._known = self._known - vms(self.site), vms(self.site)
        self.harm += [text for name in sorted(gone) if (text := self._harm(name))]

    def _harm(self, name: str) -> str:
        found = self.site.fleet.clusters()
        if not found:
            return f"VM {name} was removed with the last member of etcd"
        (workload,) = found
        members = {each.name for each in workload.etcd.members.values()}
        if name in members and len(members) > 1:
            return f"VM {name} was removed while it was one of the members {sorted(members)}"
        machine = next(iter(objects(self.site.plane.server.store, "Machine", f"default/{name}")), None)
        wanted = machine is not None and bool(machine["metadata"].get("deletionTimestamp"))
        if not wanted and objects(workload.server.store, "Node", name):
            return f"VM {name} was removed while it was a Node, and its Machine was not being deleted"
        return ""


def objects(store: Any, kind: str, name: str) -> list[dict[str, Any]]:
    found = (orjson.loads(record.value) for bucket in store.buckets() for record in store.range(bucket, prefix=name))
    return [each for each in found if each.get("kind") == kind and each["metadata"]["name"] == name.split("/")[-1]]


class User:
    """Changes the cluster, and brings it back after a restore as docs/howto/orphans.md says."""

    def __init__(self, site: Site, rng: random.Random) -> None:
        self.site = site
        self.rng = rng
        self.version = VERSIONS[0]

    async def change(self) -> None:
        """Something that makes or removes machines."""
        site, after = self.site, {"spec": {"rollout": {"after": rfc3339(self.site.clock.now())}}}
        match self.rng.choice(["workers", "planes", "roll workers", "roll planes", "upgrade"]):
            case "workers":
                await site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"replicas": self.rng.choice([1, 2, 3])}})
            case "planes":
                await site.patch(KubeadmControlPlane, PLANE, {"spec": {"replicas": self.rng.choice([1, 3])}})
            case "roll workers":
                await site.patch(MachineDeployment, DEPLOYMENT, after)
            case "roll planes":
                await site.patch(KubeadmControlPlane, PLANE, after)
            case "upgrade":
                self.version = VERSIONS[1]
                await self.apply_version()

    async def apply_version(self) -> None:
        """The manifests of this version, applied whether or not they were before. Workers follow in `settled`."""
        if self.version == VERSIONS[0]:
            return
        spec = manifest.machine_spec(image={"type": "name", "name": f"ubuntu-22.04-kube-{self.version}"})
        for name in ("new-cp", "new-worker"):
            with contextlib.suppress(AlreadyExists):
                await self.site.have(manifest.template(name, spec))
        template = {"spec": {"infrastructureRef": {"name": "new-cp"}}}
        patch = {"spec": {"version": self.version, "machineTemplate": template}}
        await self.site.patch(KubeadmControlPlane, PLANE, patch)

    async def settled(self) -> None:
        await settled(self.site, KubeadmControlPlane, PLANE)
        machine = {"version": self.version, "infrastructureRef": {"name": "new-worker"}}
        if self.version != VERSIONS[0]:
            await self.site.patch(MachineDeployment, DEPLOYMENT, {"spec": {"template": {"spec": machine}}})
        await settled(self.site, MachineDeployment, DEPLOYMENT)

    async def decide(self) -> None:
        """About orphans: Nodes are adopted, and what never became a Node is removed. Machines without a VM go."""
        client = self.site.client
        for _ in range(20):
            with contextlib.suppress(orphan.Refused):
                found = await orphan.look(client, KEY)
                if not found and not await self._dead():
                    return
                if any(each.role for each in found):
                    if any(
                        each.role and each.role.control_plane and each.role.version == self.version for each in found
                    ):
                        await self.apply_version()
                    await adoption.adopt(client, KEY, adoption.AdoptionRequest(), dry_run=False)
                elif found:
                    names = [each.owned.name for each in found]
                    chosen = await orphan.removable(client, KEY, names, force=False)
                    await orphan.remove(client, KEY, chosen, force=False)
                else:
                    for name in await self._dead():
                        await self.site.delete(Machine, name)
            await asyncio.sleep(300)
        raise AssertionError(f"orphans are left: {[each.owned.name for each in await orphan.look(client, KEY)]}")

    async def _dead(self) -> list[str]:
        """Machines that had a VM which is gone, and that nobody deletes."""
        there = vms(self.site)
        machines = [each for each in await self.site.list(Machine) if not each.metadata.deletion_timestamp]
        return [each.metadata.name for each in machines if each.spec.provider_id and each.metadata.name not in there]


async def settled(site: Site, kind: Any, name: str) -> None:
    count = (await site.get(kind, name)).spec.replicas

    def done(obj: Any) -> bool:
        status = obj.status
        same = status.replicas == status.ready_replicas == status.up_to_date_replicas == count
        return bool(same and status.observed_generation == obj.metadata.generation)

    await site.until(kind, name, done, 7200, what=f"{count} ready and up to date")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plane_that_is_restarted_or_restored_at_any_moment_converges_and_removes_nothing_alive(seed: int) -> None:
    @virtual
    async def run() -> None:
        rng = random.Random(seed)
        async with nutanix_site(seed=seed) as site:
            await site.have(*manifest.cluster_objects(NAME, 1, 1))
            await site.running(NAME, 1, 1)
            guard, user, backups = Guard(site), User(site, rng), [site.backup()]
            for _ in range(rng.choice([2, 3])):
                await asyncio.sleep(60)
                await user.change()
                await asyncio.sleep(rng.uniform(0, 90))
                if rng.random() < 0.5:
                    backups.append(site.backup())
                await asyncio.sleep(rng.uniform(0, 90))
                if rng.random() < 0.5:
                    await site.restart()
                else:
                    await site.restore(rng.choice(backups))
                    await asyncio.sleep(rng.uniform(0, 1200))
                    assert guard.harm == []
                    await user.decide()
                assert guard.harm == []
            await user.settled()
            await asyncio.sleep(WHILE / 2)
            assert guard.harm == []
            await agree(site)
            assert members(site) == {
                m.metadata.name for m in await site.list(Machine) if CONTROL_PLANE_LABEL in m.metadata.labels
            }

    run()
