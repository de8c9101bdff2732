"""Other ways to roll out, back and by hand; and Machines that nobody but the user looks after."""

from __future__ import annotations

import asyncio
from typing import Any

from capikit import manifest
from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key, Query
from homeport.core.machinedeployment.rollback import history, undo
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from scenario.capi.census import Census, between
from scenario.capi.look import CONTROL_PLANE, control_planes, workers
from scenario.capi.shape import shape

KEY = Key("default", "one-md-0")


async def change_template(y: Yard, number: int) -> None:
    await y.plane.have(manifest.template(f"one-md-{number}"))
    template = {"spec": {"infrastructureRef": {"name": f"one-md-{number}"}}}
    await y.patch(MachineDeployment, "one-md-0", {"spec": {"template": template}})


def sets_of(machines: list[Machine]) -> set[str]:
    return {m.metadata.labels["cluster.x-k8s.io/set-name"] for m in machines}


def test_on_delete_replaces_what_the_user_deletes_and_nothing_else() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 3)
            await y.steady("one", 1, 3, "v1.30.0")
            await y.patch(MachineDeployment, "one-md-0", {"spec": {"rollout": {"strategy": {"type": "OnDelete"}}}})
            old = [m.metadata.name for m in await workers(y)]
            await change_template(y, 1)
            await asyncio.sleep(1800)
            assert sorted(m.metadata.name for m in await workers(y)) == sorted(old)
            with Census(y) as census:
                census.rules = {"one-md-0": between(2, 3)}
                for number, name in enumerate(old):
                    await y.delete(Machine, name)
                    await y.gone(Machine, name)
                    found = await y.until(MachineDeployment, "one-md-0", lambda m: m.status.available_replicas == 3)
                    assert found.status.up_to_date_replicas == number + 1
            await y.steady("one", 1, 3, "v1.30.0")
            assert len(y.infra.created) == 7

    run()


def test_a_moment_to_roll_out_after_is_kept_for_workers_and_control_planes() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 2)
            await y.steady("one", 1, 2, "v1.30.0")
            after = {"spec": {"rollout": {"after": rfc3339(y.clock.now() + 3600)}}}
            await y.patch(MachineDeployment, "one-md-0", after)
            await y.patch(KubeadmControlPlane, "one-cp", after)
            old = set(y.alive())
            await asyncio.sleep(3500)
            assert set(y.alive()) == old
            with Census(y) as census:
                census.rules = {"one-cp": between(0, 2), "one-md-0": between(2, 3)}
                await asyncio.sleep(600)
                await y.steady("one", 1, 2, "v1.30.0")
                await y.plane.settle(quiet=60)
            assert not set(y.alive()) & old
            assert len(y.infra.created) == 6
            await asyncio.sleep(1800)
            assert len(y.infra.created) == 6

    run()


def test_a_rollout_is_undone() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 2)
            await y.steady("one", 1, 2, "v1.30.0")
            before = sets_of(await workers(y))
            await change_template(y, 1)
            await y.steady("one", 1, 2, "v1.30.0")
            await y.plane.settle(quiet=30)
            known = await history(y.client, KEY)
            assert [each.infrastructure.rpartition("/")[2] for each in known] == ["one-md-0", "one-md-1"]
            assert [each.current for each in known] == [False, True]
            with Census(y) as census:
                census.rules = {"one-md-0": between(2, 3)}
                await undo(y.client, KEY)
                await y.until(
                    MachineDeployment,
                    "one-md-0",
                    lambda m: m.spec.template.spec.infrastructure_ref.name == "one-md-0",
                )
                await y.steady("one", 1, 2, "v1.30.0")
                await y.plane.settle(quiet=30)
            assert sets_of(await workers(y)) == before
            assert len((await y.client.list(MachineSet, Query(namespace="default"))).items) == 2

    run()


def test_five_control_planes_become_three_and_etcd_with_them() -> None:
    @virtual
    async def run() -> None:
        async with yard(domains=["a", "b", "c"]) as y:
            await y.create("one", 5, 0)
            await y.steady("one", 5, 0, "v1.30.0")
            with Census(y) as census:
                census.rules = {"one-cp": between(3, 5)}
                await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
                await y.steady("one", 3, 0, "v1.30.0")
                await y.plane.settle(quiet=60)
            (workload,) = y.fleet.clusters()
            assert len(workload.etcd.members) == 3
            assert sorted(m.spec.failure_domain for m in await control_planes(y)) == ["a", "b", "c"]
            assert len(y.infra.created) == 5

    run()


def test_a_machine_set_works_without_a_deployment() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 0)
            *parts, deployment = manifest.workers("one", 2, "v1.30.0")
            labels = {"pool": "mine"}
            spec = {
                "clusterName": "one",
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": deployment["spec"]["template"]["spec"]},
            }
            alone = {**deployment, "kind": "MachineSet", "metadata": {"name": "one-set", "namespace": "default"}}
            await y.plane.have(*parts, {**alone, "spec": spec})
            await y.until(MachineSet, "one-set", lambda s: s.status.available_replicas == 2)
            await y.patch(MachineSet, "one-set", {"spec": {"replicas": 3}})
            await y.until(MachineSet, "one-set", lambda s: s.status.available_replicas == 3)
            victim = (await workers(y))[0].metadata.name
            await y.delete(Machine, victim)
            await y.gone(Machine, victim)
            await y.until(MachineSet, "one-set", lambda s: s.status.available_replicas == 3)
            await y.patch(MachineSet, "one-set", {"spec": {"replicas": 1}})
            await y.until(MachineSet, "one-set", lambda s: s.status.replicas == 1)
            assert len(y.infra.created) == 5
            await y.delete(MachineSet, "one-set")
            await y.gone(MachineSet, "one-set")
            assert not await workers(y)

    run()


def _alone(name: str, *, control_plane: bool, config: dict[str, Any]) -> list[dict[str, Any]]:
    meta = {"name": name, "namespace": "default"}
    machine = {
        "clusterName": "one",
        "version": "v1.30.0",
        "bootstrap": {
            "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name},
        },
        "infrastructureRef": {"apiGroup": "infrastructure.example.com", "kind": "GenericMachine", "name": name},
    }
    labels = {"cluster.x-k8s.io/cluster-name": "one", **({CONTROL_PLANE: ""} if control_plane else {})}
    return [
        {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "metadata": meta,
            "spec": config,
        },
        {"apiVersion": "infrastructure.example.com/v1", "kind": "GenericMachine", "metadata": meta, "spec": {}},
        {
            "apiVersion": manifest.CLUSTER_API,
            "kind": "Machine",
            "metadata": {**meta, "labels": labels},
            "spec": machine,
        },
    ]


def test_machines_that_the_user_wrote_are_a_cluster_without_a_control_plane_object() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            registration = {
                "nodeRegistration": {
                    "kubeletExtraArgs": [{"name": "provider-id", "value": "generic://{{ ds.meta_data.instance_id }}"}]
                }
            }
            cluster = manifest.cluster("one")
            del cluster["spec"]["controlPlaneRef"]
            infra = next(each for each in manifest.whole("one", 1, 0) if each["kind"] == "GenericCluster")
            first = {
                "clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"},
                "initConfiguration": registration,
                "joinConfiguration": registration,
            }
            second = {"joinConfiguration": {**registration, "controlPlane": {}}}
            await y.plane.have(
                cluster,
                infra,
                *_alone("cp-1", control_plane=True, config=first),
                *_alone("worker", control_plane=False, config={"joinConfiguration": registration}),
            )
            # Whoever comes first initialises the cluster, whatever its configuration is for.
            await y.until(Machine, "cp-1", lambda m: m.spec.bootstrap.data_secret_name is not None)
            await y.plane.have(*_alone("cp-2", control_plane=True, config=second))
            for name in ("cp-1", "cp-2", "worker"):
                await y.until(Machine, name, lambda m: m.status.phase == "Running", what=f"{name} running")
            await y.until(Cluster, "one", lambda c: c.status.initialization.control_plane_initialized is True)
            await y.plane.settle(quiet=60)
            assert len(y.infra.created) == 3
            (workload,) = y.fleet.clusters()
            assert len(workload.etcd.members) == 2
            await y.delete(Cluster, "one")
            await y.gone(Cluster, "one")
            await y.plane.settle(quiet=30)
            assert not shape(y)

    run()
