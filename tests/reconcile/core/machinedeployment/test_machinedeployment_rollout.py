"""MachineDeployments on a real API, with Machines that take ten seconds to come and to go."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachineSet
from homeport.client.protocol import Key, Query
from homeport.core.machinedeployment.revision import HISTORY, HISTORY_LIMIT, find_revision, undo_patch
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import versions, virtual
from reconcile.core.machineset.worker_kit import (
    CONFIG,
    INFRA,
    INFRA_TEMPLATE,
    MD,
    REVISION,
    Workers,
    cluster,
    machine_deployment,
    machine_template,
    said,
    template,
    workers,
)


def rolling(surge: Any, unavailable: Any) -> dict[str, Any]:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}}


async def running(w: Workers, replicas: int) -> MachineDeployment:
    """All that is wanted is there, and nothing else."""

    def there(d: MachineDeployment) -> bool:
        counts = {d.status.replicas, d.status.available_replicas, d.status.up_to_date_replicas}
        return counts == {replicas} and d.status.observed_generation == d.metadata.generation

    found: MachineDeployment = await w.p.until(MachineDeployment, MD, there, 600, what=f"{replicas} run")
    return found


async def extremes(w: Workers, seen: dict[str, int]) -> None:
    """Follows how many Machines there are and how many of them work, event by event."""
    known: dict[str, Machine] = {}
    complete = False
    async with w.client.watch(Machine, Query(namespace="default"), initial_events=True) as events:
        async for event in events:
            complete = complete or event.initial_events_end
            if event.type == "BOOKMARK":
                continue
            known[event.object.metadata.name] = event.object
            if event.type == "DELETED":
                del known[event.object.metadata.name]
            if not complete:
                continue
            alive = [m for m in known.values() if not m.metadata.deletion_timestamp]
            working = sum(condition.is_true(m.status.conditions, "Available") for m in alive)
            seen["most"] = max(seen.get("most", 0), len(known))
            seen["least"] = min(seen.get("least", 99), working)


@virtual
async def test_a_new_machinedeployment_gets_a_set_and_its_machines() -> None:
    async with workers(cluster(), machine_deployment(3)) as w:
        deployment = await running(w, 3)
        [found] = await w.sets()
        assert found.metadata.annotations[REVISION] == "1" == deployment.metadata.annotations[REVISION]
        assert found.metadata.name.startswith("md-")
        assert found.metadata.labels["cluster.x-k8s.io/deployment-name"] == "md"
        mark = found.metadata.labels["machine-template-hash"]
        assert found.spec.selector["matchLabels"] == {"pool": "a", "machine-template-hash": mark}
        for machine in await w.machines():
            assert machine.metadata.labels["machine-template-hash"] == mark
            for kind in (CONFIG, INFRA):
                assert (await w.client.get(kind, Key("default", machine.metadata.name))).metadata["labels"][
                    "pool"
                ] == "a"
        assert said(deployment, "Available")[0] == "True"
        assert deployment.status.phase == "Running"
        assert [(v.version, v.replicas) for v in deployment.status.versions] == [("v1.30.0", 3)]
        assert deployment.status.selector == "pool=a"


@virtual
async def test_nothing_is_written_once_all_is_well() -> None:
    async with workers(cluster(), machine_deployment(2)) as w:
        await running(w, 2)
        await w.p.settle()
        before = versions(w.p)
        await asyncio.sleep(3600)
        for controller in w.p.manager.controllers:
            controller.wake_all()
        await w.p.settle()
        assert versions(w.p) == before


@virtual
async def test_a_new_template_replaces_all_machines_within_the_limits() -> None:
    async with workers(cluster(), machine_deployment(3, spec=rolling(1, 0))) as w:
        await running(w, 3)
        before = {m.metadata.name for m in await w.machines()}
        seen: dict[str, int] = {}
        watching = asyncio.create_task(extremes(w, seen))
        await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": "v1.31.0"}}})
        await w.p.until(MachineDeployment, MD, lambda d: said(d, "RollingOut")[0] == "True", 60)
        deployment = await running(w, 3)
        watching.cancel()
        machines = await w.machines()
        assert {m.spec.version for m in machines} == {"v1.31.0"}
        assert not before & {m.metadata.name for m in machines}
        assert seen == {"most": 4, "least": 3}
        old, new = await w.sets()
        assert (old.spec.replicas, new.spec.replicas) == (0, 3)
        assert deployment.metadata.annotations[REVISION] == "2" == new.metadata.annotations[REVISION]
        assert said(deployment, "RollingOut")[0] == "False"


@virtual
async def test_the_status_never_calls_machines_of_the_template_before_up_to_date() -> None:
    async with workers(cluster(), machine_deployment(2)) as w:
        await running(w, 2)
        changed = await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": "v1.31.0"}}})
        seen = await w.p.until(
            MachineDeployment, MD, lambda d: d.status.observed_generation == changed.metadata.generation, 60
        )
        assert seen.status.up_to_date_replicas == 0
        assert said(seen, "RollingOut")[0] == "True"


@virtual
async def test_percentages_bound_a_rollout() -> None:
    async with workers(cluster(), machine_deployment(5, spec=rolling("25%", "50%"))) as w:
        await running(w, 5)
        seen: dict[str, int] = {}
        watching = asyncio.create_task(extremes(w, seen))
        await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": "v1.31.0"}}})
        await w.p.until(MachineDeployment, MD, lambda d: said(d, "RollingOut")[0] == "True", 60)
        await running(w, 5)
        watching.cancel()
        assert seen["most"] <= 7
        assert seen["least"] == 3


@virtual
async def test_labels_and_timeouts_reach_living_machines_without_a_rollout() -> None:
    async with workers(cluster(), machine_deployment(2)) as w:
        await running(w, 2)
        before = {m.metadata.name for m in await w.machines()}
        change = {
            "metadata": {"labels": {"tier": "web"}, "annotations": {"note": "x"}},
            "spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}, "minReadySeconds": 5},
        }
        await w.patch(MachineDeployment, MD, spec={"template": change})
        await w.p.settle()
        machines = await w.machines()
        assert {m.metadata.name for m in machines} == before
        for machine in machines:
            assert machine.metadata.labels["tier"] == "web"
            assert machine.metadata.annotations["note"] == "x"
            assert machine.spec.deletion.node_drain_timeout_seconds == 60
            assert machine.spec.min_ready_seconds == 5
            infra = await w.client.get(INFRA, Key("default", machine.metadata.name))
            assert infra.metadata["labels"]["tier"] == "web"
        await w.patch(
            MachineDeployment, MD, spec={"template": {"metadata": {"labels": {"tier": None}, "annotations": None}}}
        )
        await w.p.settle()
        [only] = await w.sets()
        assert "tier" not in only.metadata.labels
        for machine in await w.machines():
            assert "tier" not in machine.metadata.labels
            assert "note" not in machine.metadata.annotations
            infra = await w.client.get(INFRA, Key("default", machine.metadata.name))
            assert "tier" not in infra.metadata["labels"]


@virtual
async def test_annotations_of_the_machinedeployment_come_and_go_on_its_sets() -> None:
    skip = "machineset.cluster.x-k8s.io/skip-preflight-checks"
    async with workers(cluster(), machine_deployment(1)) as w:
        await running(w, 1)
        await w.patch(MachineDeployment, MD, metadata={"annotations": {skip: "All"}})
        await w.p.settle()
        [only] = await w.sets()
        assert only.metadata.annotations[skip] == "All"
        await w.patch(MachineDeployment, MD, metadata={"annotations": {skip: None}})
        await w.p.settle()
        [only] = await w.sets()
        assert skip not in only.metadata.annotations


@virtual
async def test_on_delete_replaces_only_what_is_deleted() -> None:
    spec = {"rollout": {"strategy": {"type": "OnDelete"}}}
    async with workers(cluster(), machine_deployment(3, spec=spec)) as w:
        await running(w, 3)
        await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": "v1.31.0"}}})
        await w.p.settle()
        assert [s.spec.replicas for s in await w.sets()] == [3, 0]
        [first, *_] = await w.machines()
        await w.client.delete(Machine, Key("default", first.metadata.name))
        await w.p.settle(quiet=30)
        assert [s.spec.replicas for s in await w.sets()] == [2, 1]
        assert sorted(m.spec.version for m in await w.machines()) == ["v1.30.0", "v1.30.0", "v1.31.0"]


@virtual
async def test_a_paused_machinedeployment_is_scaled_but_not_rolled_out() -> None:
    async with workers(cluster(), machine_deployment(2)) as w:
        await running(w, 2)
        await w.patch(MachineDeployment, MD, spec={"paused": True, "template": {"spec": {"version": "v1.31.0"}}})
        await w.patch(MachineDeployment, MD, spec={"replicas": 4})
        await w.p.settle(quiet=60)
        assert {m.spec.version for m in await w.machines()} == {"v1.30.0"}
        assert len(await w.machines()) == 4
        await w.patch(MachineDeployment, MD, spec={"paused": None})
        await running(w, 4)
        assert {m.spec.version for m in await w.machines()} == {"v1.31.0"}


@virtual
async def test_a_rollout_begins_when_its_time_comes() -> None:
    async with workers(cluster(), machine_deployment(1)) as w:
        await running(w, 1)
        before = {m.metadata.name for m in await w.machines()}
        when = rfc3339(w.p.clock.now() + 1800)
        await w.patch(MachineDeployment, MD, spec={"rollout": {"after": when}})
        await asyncio.sleep(1700)
        assert {m.metadata.name for m in await w.machines()} == before
        await asyncio.sleep(200)
        await running(w, 1)
        assert not before & {m.metadata.name for m in await w.machines()}
        assert len(await w.sets()) == 2


@virtual
async def test_undo_goes_back_to_the_set_of_the_revision_before() -> None:
    async with workers(cluster(), machine_deployment(2)) as w:
        await running(w, 2)
        [first] = await w.sets()
        change = {
            "spec": {
                "version": "v1.31.0",
                "infrastructureRef": machine_template(infra="large")["spec"]["infrastructureRef"],
            }
        }
        await w.patch(MachineDeployment, MD, spec={"template": change})
        await running(w, 2)
        found = find_revision(await w.sets(), await w.deployment())
        assert found.metadata.name == first.metadata.name
        await w.patch(MachineDeployment, MD, **undo_patch(found))
        deployment = await running(w, 2)
        assert {m.spec.version for m in await w.machines()} == {"v1.30.0"}
        assert deployment.metadata.annotations[REVISION] == "3"
        again = await w.client.get(MachineSet, Key("default", first.metadata.name))
        assert (again.metadata.annotations[REVISION], again.metadata.annotations[HISTORY]) == ("3", "1")
        assert again.spec.replicas == 2


@virtual
async def test_as_many_old_sets_are_kept_as_the_annotation_says() -> None:
    async with workers(cluster(), machine_deployment(1, metadata={"annotations": {HISTORY_LIMIT: "2"}})) as w:
        for minor in range(30, 35):
            await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": f"v1.{minor}.0"}}})
            await running(w, 1)
        await w.p.settle()
        assert [s.spec.template.spec.version for s in await w.sets()] == ["v1.32.0", "v1.33.0", "v1.34.0"]


@virtual
async def test_an_invalid_limit_is_reported_and_corrected() -> None:
    async with workers(cluster(), machine_deployment(1, spec=rolling("many", 0))) as w:
        await w.p.until(MachineDeployment, MD, lambda d: "is not a number or" in str(d.status.conditions), 60)
        assert not await w.sets()
        await w.patch(MachineDeployment, MD, spec=rolling(1, 0))
        await running(w, 1)


@virtual
async def test_deletion_takes_sets_and_machines_along() -> None:
    async with workers(cluster(), machine_deployment(2)) as w:
        await running(w, 2)
        await w.client.delete(MachineDeployment, MD)
        deployment = await w.p.until(MachineDeployment, MD, lambda d: said(d, "Deleting")[0] == "True", 60)
        assert deployment.status.phase == "ScalingDown"
        await w.p.gone(MachineDeployment, MD, 120)
        assert not await w.machines()
        assert not await w.sets()


@virtual
async def test_a_missing_template_is_named_and_its_coming_is_noticed() -> None:
    spec = {"template": machine_template(infra="huge")}
    async with workers(cluster(), machine_deployment(1, spec=spec)) as w:
        await w.p.until(
            MachineDeployment, MD, lambda d: "FakeMachineTemplate huge does not exist" in str(d.status.conditions), 60
        )
        await w.p.have(template(INFRA_TEMPLATE, "huge", size="huge"))
        await running(w, 1)


@virtual
async def test_a_broken_template_stops_the_rollout_and_keeps_what_works() -> None:
    def broken(machine: Machine) -> bool:
        return machine.spec.version == "v1.31.0"

    async with workers(cluster(), machine_deployment(4, spec=rolling(1, 1)), broken=broken) as w:
        await running(w, 4)
        await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": "v1.31.0"}}})
        await w.p.settle(quiet=60)
        deployment = await w.deployment()
        assert deployment.status.available_replicas == 3
        assert len(await w.machines()) == 5
        assert said(deployment, "Available")[0] == "True"


@virtual
async def test_a_rollout_of_ten_machines_costs_few_writes() -> None:
    async with workers(cluster(), machine_deployment(10, spec=rolling(10, 0)), seconds=1) as w:
        await running(w, 10)
        before = w.p.server.store.revision
        await w.patch(MachineDeployment, MD, spec={"template": {"spec": {"version": "v1.31.0"}}})
        await running(w, 10)
        await w.p.settle()
        # 10 x (config, infrastructure, Machine, its status, deletion, its end), 20 marked outdated; the rest is ours.
        assert w.p.server.store.revision - before < 160
