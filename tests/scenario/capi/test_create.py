"""Clusters come up on simulated machines, of every size, with either contract, and come to rest."""

from __future__ import annotations

import pytest

from capikit.harness import harness
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import versions, virtual


@pytest.mark.parametrize(("control_planes", "workers"), [(1, 0), (3, 3), (5, 10)])
def test_a_cluster_of_every_size_becomes_available(control_planes: int, workers: int) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", control_planes, workers)
            await h.available("one")
            await h.steady("one", control_planes, workers, "v1.30.0")
            machines = await h.machines("one")
            assert len(machines) == control_planes + workers == len(h.infra.machines)
            assert {m.status.phase for m in machines} == {"Running"}
            assert len(h.infra.created) == control_planes + workers

    run()


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_providers_of_both_contracts_work(contract: str) -> None:
    @virtual
    async def run() -> None:
        async with harness(contract=contract, domains=["a", "b", "c"]) as h:
            await h.create("one", 3, 2)
            cluster = await h.available("one")
            await h.steady("one", 3, 2, "v1.30.0")
            assert {each.name for each in cluster.status.failure_domains} == {"a", "b", "c"}
            planes = [m for m in await h.machines("one") if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
            assert sorted(m.spec.failure_domain for m in planes) == ["a", "b", "c"]

    run()


def test_nothing_is_written_once_a_cluster_is_available() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 3)
            await h.steady("one", 3, 3, "v1.30.0")
            await h.plane.settle(quiet=30)
            before = versions(h.plane)
            revision = h.plane.server.store.revision
            await h.plane.settle(quiet=120)
            changed = {k for k, v in versions(h.plane).items() if before.get(k) != v}
            assert not changed, f"{h.plane.server.store.revision - revision} writes in two quiet minutes: {changed}"

    run()


def test_the_workload_cluster_has_the_nodes_that_the_machines_name() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 2)
            await h.steady("one", 3, 2, "v1.30.0")
            (workload,) = h.fleet.clusters()
            from homeport.sim.machine.workload.kind import NODE

            nodes = {n.name: n for n in (await workload.client().list(NODE)).items}
            machines = await h.machines("one")
            assert {m.status.node_ref.name for m in machines if m.status.node_ref} == set(nodes)
            for machine in machines:
                assert machine.status.node_ref is not None
                node = nodes[machine.status.node_ref.name]
                assert node["spec"]["providerID"] == machine.spec.provider_id
                taints = [t["key"] for t in node["spec"].get("taints", ())]
                assert "node.cluster.x-k8s.io/uninitialized" not in taints

    run()


def test_two_clusters_do_not_affect_each_other() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 1)
            await h.create("two", 3, 1)
            await h.steady("one", 1, 1, "v1.30.0")
            await h.steady("two", 3, 1, "v1.30.0")
            page = await h.client.list(Machine, Query(namespace="default"))
            assert sorted(m.spec.cluster_name for m in page.items) == ["one"] * 2 + ["two"] * 4
            assert len(h.fleet.clusters()) == 2
            assert (await h.client.get(Cluster, Key("default", "one"))).status.phase == "Provisioned"

    run()
