"""Other ways to roll out, back and by hand; and Machines that nobody but the user looks after."""

from __future__ import annotations

import asyncio
from typing import Any

from capikit import manifest
from capikit.harness import Harness, harness
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


async def change_template(h: Harness, number: int) -> None:
    await h.plane.have(manifest.template(f"one-md-{number}"))
    template = {"spec": {"infrastructureRef": {"name": f"one-md-{number}"}}}
    await h.patch(MachineDeployment, "one-md-0", {"spec": {"template": template}})


def sets_of(machines: list[Machine]) -> set[str]:
    return {m.metadata.labels["cluster.x-k8s.io/set-name"] for m in machines}


def test_on_delete_replaces_what_the_user_deletes_and_nothing_else() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 3)
            await h.steady("one", 1, 3, "v1.30.0")
            await h.patch(MachineDeployment, "one-md-0", {"spec": {"rollout": {"strategy": {"type": "OnDelete"}}}})
            old = [m.metadata.name for m in await workers(h)]
            await change_template(h, 1)
            await asyncio.sleep(1800)
            assert sorted(m.metadata.name for m in await workers(h)) == sorted(old)
            with Census(h) as census:
                census.rules = {"one-md-0": between(2, 3)}
                for number, name in enumerate(old):
                    await h.delete(Machine, name)
                    await h.gone(Machine, name)
                    found = await h.until(MachineDeployment, "one-md-0", lambda m: m.status.available_replicas == 3)
                    assert found.status.up_to_date_replicas == number + 1
            await h.steady("one", 1, 3, "v1.30.0")
            assert len(h.infra.created) == 7

    run()


def test_a_moment_to_roll_out_after_is_kept_for_workers_and_control_planes() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 2)
            await h.steady("one", 1, 2, "v1.30.0")
            after = {"spec": {"rollout": {"after": rfc3339(h.clock.now() + 3600)}}}
            await h.patch(MachineDeployment, "one-md-0", after)
            await h.patch(KubeadmControlPlane, "one-cp", after)
            old = set(h.alive())
            await asyncio.sleep(3500)
            assert set(h.alive()) == old
            with Census(h) as census:
                census.rules = {"one-cp": between(0, 2), "one-md-0": between(2, 3)}
                await asyncio.sleep(600)
                await h.steady("one", 1, 2, "v1.30.0")
                await h.plane.settle(quiet=60)
            assert not set(h.alive()) & old
            assert len(h.infra.created) == 6
            await asyncio.sleep(1800)
            assert len(h.infra.created) == 6

    run()


def test_a_rollout_is_undone() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 2)
            await h.steady("one", 1, 2, "v1.30.0")
            before = sets_of(await workers(h))
            await change_template(h, 1)
            await h.steady("one", 1, 2, "v1.30.0")
            await h.plane.settle(quiet=30)
            known = await history(h.client, KEY)
            assert [each.infrastructure.rpartition("/")[2] for each in known] == ["one-md-0", "one-md-1"]
            assert [each.current for each in known] == [False, True]
            with Census(h) as census:
                census.rules = {"one-md-0": between(2, 3)}
                await undo(h.client, KEY)
                await h.until(
                    MachineDeployment,
                    "one-md-0",
                    lambda m: m.spec.template.spec.infrastructure_ref.name == "one-md-0",
                )
                await h.steady("one", 1, 2, "v1.30.0")
                await h.plane.settle(quiet=30)
            assert sets_of(await workers(h)) == before
            assert len((await h.client.list(MachineSet, Query(namespace="default"))).items) == 2

    run()


def test_five_control_planes_become_three_and_etcd_with_them() -> None:
    @virtual
    async def run() -> None:
        async with harness(domains=["a", "b", "c"]) as h:
            await h.create("one", 5, 0)
            await h.steady("one", 5, 0, "v1.30.0")
            with Census(h) as census:
                census.rules = {"one-cp": between(3, 5)}
                await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
                await h.steady("one", 3, 0, "v1.30.0")
                await h.plane.settle(quiet=60)
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 3
            assert sorted(m.spec.failure_domain for m in await control_planes(h)) == ["a", "b", "c"]
            assert len(h.infra.created) == 5

    run()


def test_a_machine_set_works_without_a_deployment() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 0)
            *parts, deployment = manifest.workers("one", 2, "v1.30.0")
            labels = {"pool": "mine"}
            spec = {
                "clusterName": "one",
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": deployment["spec"]["template"]["spec"]},
            }
            alone = {**deployment, "kind": "MachineSet", "metadata": {"name": "one-set", "namespace": "default"}}
            await h.plane.have(*parts, {**alone, "spec": spec})
            await h.until(MachineSet, "one-set", lambda s: s.status.available_replicas == 2)
            await h.patch(MachineSet, "one-set", {"spec": {"replicas": 3}})
            await h.until(MachineSet, "one-set", lambda s: s.status.available_replicas == 3)
            victim = (await workers(h))[0].metadata.name
            await h.delete(Machine, victim)
            await h.gone(Machine, victim)
            await h.until(MachineSet, "one-set", lambda s: s.status.available_replicas == 3)
            await h.patch(MachineSet, "one-set", {"spec": {"replicas": 1}})
            await h.until(MachineSet, "one-set", lambda s: s.status.replicas == 1)
            assert len(h.infra.created) == 5
            await h.delete(MachineSet, "one-set")
            await h.gone(MachineSet, "one-set")
            assert not await workers(h)

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
        async with harness() as h:
            registration = {
                "nodeRegistration": {
                    "kubeletExtraArgs": [{"name": "provider-id", "value": "generic://{{ ds.meta_data.instance_id }}"}]
                }
            }
            cluster = manifest.cluster("one")
            del cluster["spec"]["controlPlaneRef"]
            infra = next(each for each in manifest.cluster_objects("one", 1, 0) if each["kind"] == "GenericCluster")
            first = {
                "clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"},
                "initConfiguration": registration,
                "joinConfiguration": registration,
            }
            second = {"joinConfiguration": {**registration, "controlPlane": {}}}
            await h.plane.have(
                cluster,
                infra,
                *_alone("cp-1", control_plane=True, config=first),
                *_alone("worker", control_plane=False, config={"joinConfiguration": registration}),
            )
            # Whoever comes first initialises the cluster, whatever its configuration is for.
            await h.until(Machine, "cp-1", lambda m: m.spec.bootstrap.data_secret_name is not None)
            await h.plane.have(*_alone("cp-2", control_plane=True, config=second))
            for name in ("cp-1", "cp-2", "worker"):
                await h.until(Machine, name, lambda m: m.status.phase == "Running", what=f"{name} running")
            await h.until(Cluster, "one", lambda c: c.status.initialization.control_plane_initialized is True)
            await h.plane.settle(quiet=60)
            assert len(h.infra.created) == 3
            (workload,) = h.fleet.clusters()
            assert len(workload.etcd.members) == 2
            await h.delete(Cluster, "one")
            await h.gone(Cluster, "one")
            await h.plane.settle(quiet=30)
            assert not shape(h)

    run()
