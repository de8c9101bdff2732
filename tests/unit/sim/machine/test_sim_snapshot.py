"""What is simulated goes on after a restart, as a site does after a loss of power."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.client.protocol import Key, MergePatch
from homeport.sim.engine import guest
from homeport.sim.machine.fleet import describe
from homeport.sim.machine.image import Image
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.snapshot import Snapshot, SnapshotError
from homeport.sim.machine.workload.k0s.definition import ETCD_MEMBER
from homeport.sim.machine.workload.kind import CONFIG_MAP, NODE, Json
from homeport.sim.machine.workload.node import NO_NETWORK
from homeport.store import Store
from unit.sim.machine.k0s_kit import K0S_IMAGE, controller_data, controller_token, k0s_token, worker_data
from unit.sim.machine.sim_kit import VIP, Sim, join_data, simulation


async def site(sim: Sim) -> None:
    """One control plane, one worker, and something that somebody wrote into the cluster."""
    cluster = await sim.cluster_up()
    await sim.boot("worker-0", join_data(sim.secrets))
    body = {"metadata": {"name": "mine", "namespace": "default"}, "data": {"k": "v"}}
    await cluster.client().create(body, kind=CONFIG_MAP)


def ready(node: Json) -> Json:
    return next(each for each in node["status"]["conditions"] if each["type"] == "Ready")


def databases(folder: Path) -> list[Path]:
    return list(folder.glob("*.db"))


async def again(before: Sim, sim: Sim, folder: Path) -> None:
    await Snapshot(folder).load(sim.fleet)
    sim._ids.update(before._ids)
    sim._next = before._next
    sim._addresses.update(before._addresses)
    sim.secrets = before.secrets


async def test_machines_and_their_cluster_go_on_where_they_were(tmp_path: Path) -> None:
    async with simulation() as before:
        await site(before)
        uids = {name: (await before.node(name))["metadata"]["uid"] for name in ("cp-0", "worker-0")}
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        assert not sim.cluster.serving()
        console = await sim.boot("cp-0", address="10.0.0.11", again=True)
        await sim.boot("worker-0", address="10.0.0.12", again=True)
        assert "kubeadm" not in console  # its user data was carried out before
        assert sim.cluster.serving()
        assert {name: (await sim.node(name))["metadata"]["uid"] for name in uids} == uids
        assert (await sim.cluster.client().get(CONFIG_MAP, Key("default", "mine")))["data"] == {"k": "v"}
        assert sim.cluster.etcd.elect() == "cp-0"
        console = await sim.boot("worker-1", join_data(sim.secrets), address="10.0.0.13")
        assert "Successfully registered node worker-1" in console, console


async def test_nodes_without_a_network_plugin_are_not_ready_after_a_restart_either(tmp_path: Path) -> None:
    def bare(machine: guest.Machine) -> Image:
        return replace(describe(machine), cni=False)

    async with simulation(images=bare) as before:
        await before.cluster_up()
        assert ready(await before.node("cp-0"))["status"] == "False"
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation(images=bare) as sim:
        await again(before, sim, tmp_path)
        await sim.boot("cp-0", address="10.0.0.11", again=True)
        kubelet = sim.cluster.kubelets["cp-0"]
        kubelet.report_soon()
        await kubelet.beat()
        found = ready(await sim.node("cp-0"))
        assert (found["status"], found["message"]) == ("False", NO_NETWORK)


async def test_a_machine_in_the_middle_of_its_first_boot_begins_it_again(tmp_path: Path) -> None:
    async with simulation() as before:
        await before.cluster_up()
        before.power_on("worker-0", join_data(before.secrets))
        await before.fleet.settled()
        machine = before.fleet.find("worker-0")
        assert machine is not None
        machine.provisioned = False  # as it is until the last command is done
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        assert await sim.node("worker-0") is None
        await sim.boot("cp-0", address="10.0.0.11", again=True)
        console = await sim.boot("worker-0", join_data(sim.secrets), address="10.0.0.12", again=True)
        assert "Successfully registered node worker-0" in console, console


async def test_a_machine_that_joins_while_the_database_is_copied_joins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulation() as before:
        cluster = await before.cluster_up()
        copy = Store.backup

        async def slow_copy(store: Store, target: Path) -> None:
            await copy(store, target)
            await before.boot("worker-0", join_data(before.secrets))

        monkeypatch.setattr(type(cluster.server.store), "backup", slow_copy)
        await Snapshot(tmp_path).save(before.fleet)
        monkeypatch.undo()
        assert await before.node("worker-0") is not None
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        await sim.boot("cp-0", address="10.0.0.11", again=True)
        console = await sim.boot("worker-0", join_data(sim.secrets), address="10.0.0.12", again=True)
        assert "Successfully registered node worker-0" in console, console


async def test_a_machine_whose_node_is_saved_and_that_is_not_saved_itself_joins_again(tmp_path: Path) -> None:
    """The process was killed after the database was written, and before the machines were."""
    async with simulation() as before:
        await before.cluster_up()
        snapshot = Snapshot(tmp_path)
        await snapshot.save(before.fleet)
        machines = (tmp_path / "fleet.json").read_bytes()
        await before.boot("worker-0", join_data(before.secrets))
        uid = (await before.node("worker-0"))["metadata"]["uid"]
        await snapshot.save(before.fleet)
        (tmp_path / "fleet.json").write_bytes(machines)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        await sim.boot("cp-0", address="10.0.0.11", again=True)
        console = await sim.boot("worker-0", join_data(sim.secrets), address="10.0.0.12", again=True)
        assert "Successfully registered node worker-0" in console, console
        node = await sim.node("worker-0")
        assert (node["metadata"]["uid"], ready(node)["status"]) == (uid, "True")


async def test_a_node_whose_machine_is_gone_is_given_up(tmp_path: Path) -> None:
    async with simulation() as before:
        await site(before)
        before.remove("worker-0")
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        node = await sim.cluster.client().get(NODE, Key("", "worker-0"))
        assert ready(node)["status"] == "Unknown"


async def test_databases_are_written_when_something_has_changed_and_go_with_their_cluster(tmp_path: Path) -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        snapshot = Snapshot(tmp_path)
        await sim.fleet.settled()
        await snapshot.save(sim.fleet)
        (database,) = databases(tmp_path)
        first = os.stat(database).st_ino
        for kubelet in cluster.kubelets.values():
            await kubelet.beat()
        await snapshot.save(sim.fleet)
        assert os.stat(database).st_ino == first  # a heartbeat is no change
        await sim.add_token("aaaaaa.0123456789abcdef")
        await snapshot.save(sim.fleet)
        assert os.stat(database).st_ino != first
        sim.remove("cp-0")
        await sim.fleet.settled()
        await cluster.close()
        await snapshot.save(sim.fleet)
        assert not databases(tmp_path)


async def test_files_are_private_because_they_hold_keys(tmp_path: Path) -> None:
    async with simulation() as sim:
        await sim.cluster_up()
        await Snapshot(tmp_path / "machine").save(sim.fleet)
        paths = [*databases(tmp_path / "machine"), tmp_path / "machine" / "fleet.json"]
        assert len(paths) == 2
        assert all(os.stat(path).st_mode & 0o077 == 0 for path in paths), paths


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "fleet.json").write_text('{"machines": 1}')
    async with simulation() as sim:
        with pytest.raises(SnapshotError, match=r"fleet\.json"):
            await Snapshot(tmp_path).load(sim.fleet)


async def test_controllers_and_workers_of_k0s_go_on_where_they_were(tmp_path: Path) -> None:
    async with simulation() as before:
        await before.boot("cp-0", controller_data(before.secrets), image=K0S_IMAGE)
        token = await controller_token(before)
        for name in ("cp-1", "cp-2"):
            await before.boot(name, controller_data(None, token=token), image=K0S_IMAGE)
        await before.boot("md-0", worker_data(await k0s_token(before)), image=K0S_IMAGE)
        members = {name: found.id for name, found in before.cluster.etcd.members.items()}
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        for name in ("cp-0", "cp-1", "cp-2", "md-0"):
            await sim.boot(name, again=True)
        assert {name: found.id for name, found in sim.cluster.etcd.members.items()} == members
        assert len(sim.cluster.serving()) == 3
        assert sim.cluster.version() == "v1.31.5+k0s"
        assert sim.network.holder(VIP) is not None
        assert sim.cluster.reachable(sim.fleet.machines[sim.id("md-0")])
        console = await sim.boot("cp-3", controller_data(None, token=await controller_token(sim)), image=K0S_IMAGE)
        assert "cp-3" in sim.cluster.etcd.members, console
        await sim.cluster.client().patch(ETCD_MEMBER, Key("", "cp-0"), MergePatch({"spec": {"leave": True}}))
        assert sim.cluster.k0s is not None
        await sim.cluster.k0s.idle()
        assert set(sim.cluster.etcd.members) == {"cp-1", "cp-2", "cp-3"}


async def test_a_k0s_worker_that_never_joined_goes_on_trying_after_a_restart(tmp_path: Path) -> None:
    async with simulation(Pace(poll=0.05, patience=0.2)) as before:
        await before.boot("cp-0", controller_data(before.secrets), image=K0S_IMAGE)
        token = await k0s_token(before)
        before.network.partition("apart", ["md-0"])
        console = await before.boot("md-0", worker_data(token), image=K0S_IMAGE)
        assert "i/o timeout" in console
        await Snapshot(tmp_path).save(before.fleet)
    async with simulation() as sim:
        await again(before, sim, tmp_path)
        await sim.boot("cp-0", again=True)
        console = await sim.boot("md-0", again=True)
        assert await sim.node("md-0") is not None, console
