"""MachineSets on a real API."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineSet
from homeport.client.errors import ApiError, Unavailable
from homeport.client.protocol import Key, MergePatch, Query
from homeport.core.machineset import creation
from homeport.core.machineset.reconciler import SetReconciler
from homeport.runtime.testing import virtual
from reconcile.core.machineset.worker_kit import (
    CONFIG,
    CONFIG_TEMPLATE,
    INFRA,
    INFRA_TEMPLATE,
    MS,
    PLANE,
    Workers,
    cluster,
    machine_set,
    ref,
    said,
    workers,
)

SKIP = "machineset.cluster.x-k8s.io/skip-preflight-checks"


async def running(w: Workers, replicas: int, timeout: float = 300) -> MachineSet:
    found: MachineSet = await w.p.until(
        MachineSet, MS, lambda s: s.status.replicas == s.status.available_replicas == replicas, timeout, what="it runs"
    )
    return found


def plane(version: str = "v1.30.0", running: str = "v1.30.0") -> dict[str, Any]:
    owner = [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "x"}]
    made = {
        "apiVersion": PLANE.api_version,
        "kind": PLANE.kind,
        "metadata": {"name": "c1", "ownerReferences": owner},
        "spec": {"version": version},
    }
    return made | ({"status": {"version": running}} if running else {})


@virtual
async def test_machines_get_a_config_and_infrastructure_of_their_name() -> None:
    async with workers(cluster(), machine_set(2)) as w:
        found = await running(w, 2)
        assert found.metadata.finalizers == ["cluster.x-k8s.io/machineset"]
        assert [r.kind for r in found.metadata.owner_references] == ["Cluster"]
        for machine in await w.machines():
            name = machine.metadata.name
            assert name.startswith("ms-")
            assert machine.metadata.labels["cluster.x-k8s.io/set-name"] == "ms"
            assert [r.controller for r in machine.metadata.owner_references] == [True]
            assert machine.spec.infrastructure_ref is not None
            assert machine.spec.bootstrap.config_ref is not None
            assert machine.spec.infrastructure_ref.name == machine.spec.bootstrap.config_ref.name == name
            infra = await w.client.get(INFRA, Key("default", name))
            assert infra["spec"] == {"size": "small"}
            assert infra.metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "small"
            await w.client.get(CONFIG, Key("default", name))
        for kind, name in ((INFRA_TEMPLATE, "small"), (CONFIG_TEMPLATE, "config")):
            template = await w.client.get(kind, Key("default", name))
            assert [r["kind"] for r in template.metadata["ownerReferences"]] == ["Cluster"]


@virtual
async def test_a_set_that_wants_more_than_one_loop_may_make_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "_IN_A_LOOP", 3)
    async with workers(cluster(), machine_set(7)) as w:
        await running(w, 7)
        assert len(await w.machines()) == 7


@virtual
async def test_a_number_of_machines_that_nobody_can_have_can_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "_IN_A_LOOP", 3)
    async with workers(cluster(), machine_set(2_000_000_000)) as w:
        await w.p.until(MachineSet, MS, lambda s: (s.status.replicas or 0) > 0, 300, what="it grows")
        await w.client.patch(MachineSet, MS, MergePatch({"spec": {"replicas": 1}}))
        await running(w, 1)


@virtual
async def test_machines_are_named_as_the_template_says() -> None:
    spec = {"machineNaming": {"template": "{{ .cluster.name }}-worker-{{ .random }}"}}
    async with workers(cluster(), machine_set(1, spec=spec)) as w:
        await running(w, 1)
        [machine] = await w.machines()
        assert machine.metadata.name.startswith("c1-worker-")


@virtual
async def test_scaling_down_takes_the_machine_that_people_chose() -> None:
    async with workers(cluster(), machine_set(3)) as w:
        await running(w, 3)
        chosen = (await w.machines())[1].metadata.name
        mark = {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}
        await w.patch(Machine, Key("default", chosen), metadata=mark)
        await w.patch(MachineSet, MS, spec={"replicas": 2})
        await running(w, 2)
        assert chosen not in {m.metadata.name for m in await w.machines()}


@virtual
async def test_an_orphan_that_fits_is_adopted_and_counts() -> None:
    orphan = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {"name": "found", "labels": {"pool": "a"}, "finalizers": ["machine.cluster.x-k8s.io"]},
        "spec": {
            "clusterName": "c1",
            "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": ref(INFRA, "found"),
        },
    }
    async with workers(cluster(), orphan, machine_set(2)) as w:
        await running(w, 2)
        names = {m.metadata.name for m in await w.machines()}
        assert len(names) == 2
        assert "found" in names
        found = await w.client.get(Machine, Key("default", "found"))
        assert [(r.kind, r.controller) for r in found.metadata.owner_references] == [("MachineSet", True)]
        assert found.spec.bootstrap.data_secret_name == "s"


@virtual
async def test_no_machine_is_made_while_the_control_plane_is_upgraded() -> None:
    async with workers(cluster(controlPlaneRef=ref(PLANE, "c1")), plane("v1.31.0", "v1.30.0"), machine_set(1)) as w:
        blocked = await w.p.until(MachineSet, MS, lambda s: "is blocked" in str(s.status.conditions), 60)
        assert "FakeControlPlane c1 is being upgraded to v1.31.0" in said(blocked, "ScalingUp")[2]
        assert not await w.machines()
        found = await w.client.get(Cluster, Key("default", "c1"))
        owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": found.metadata.uid}
        await w.patch(PLANE, Key("default", "c1"), metadata={"ownerReferences": [owner]})
        done = MergePatch({"status": {"version": "v1.31.0"}})
        await w.client.patch(PLANE, Key("default", "c1"), done, subresource="status")
        await running(w, 1)


@virtual
async def test_preflight_checks_can_be_skipped() -> None:
    metadata = {"annotations": {SKIP: "ControlPlaneIsStable"}}
    async with workers(
        cluster(controlPlaneRef=ref(PLANE, "c1")), plane("v1.31.0", "v1.30.0"), machine_set(1, metadata=metadata)
    ) as w:
        await running(w, 1)


@virtual
async def test_a_marked_machine_is_replaced() -> None:
    async with workers(cluster(), machine_set(2)) as w:
        await running(w, 2)
        sick = (await w.machines())[0]
        marks = [
            {"type": "HealthCheckSucceeded", "status": "False", "reason": "NodeStartupTimeout"},
            {"type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation"},
        ]
        now = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
        conditions = [*sick.status.conditions, *({**each, **now} for each in marks)]
        key = Key("default", sick.metadata.name)
        await w.client.patch(Machine, key, MergePatch({"status": {"conditions": conditions}}), subresource="status")
        gone = await w.p.until(Machine, key, lambda m: m.metadata.deletion_timestamp, 60)
        assert said(gone, "OwnerRemediated")[1] == "MachineDeleting"
        assert said(await w.client.get(MachineSet, MS), "Remediating")[0] == "False"
        await w.p.gone(Machine, key, 60)
        await running(w, 2)


@virtual
async def test_what_a_crash_left_half_made_becomes_a_machine_of_the_same_name() -> None:
    async with workers(cluster(), machine_set(2)) as w:
        await running(w, 2)
        await w.p.stop()
        lost = (await w.machines())[0]
        found = await w.client.get(MachineSet, MS)
        key = Key("default", lost.metadata.name)
        await w.client.patch(Machine, key, MergePatch({"metadata": {"finalizers": None}}))
        await w.client.delete(Machine, key)
        # As if the process had died after the config and the infrastructure, and before the Machine.
        for kind in (INFRA, CONFIG):
            part = await w.client.get(kind, key)
            assert part.metadata["ownerReferences"][0]["uid"] == found.metadata.uid
        fresh = SetReconciler(w.capi)
        w.p.manager.add(fresh.controller)
        outcome = await w.p.reconcile(fresh, MS)
        assert outcome.error is None
        assert {m.metadata.name for m in await w.machines()} >= {lost.metadata.name}
        page = await w.client.list(INFRA, Query(namespace="default"))
        assert len(page.items) == 2


@virtual
async def test_a_failed_creation_leaves_no_second_copy_behind() -> None:
    async with workers(cluster(), machine_set(0)) as w:
        await w.p.settle()
        await w.p.stop()
        await w.patch(MachineSet, MS, spec={"replicas": 2})
        fresh = SetReconciler(w.capi)
        w.p.manager.add(fresh.controller)
        whole, failures = fresh._creation._client, []

        class Failing:
            """Every third write is lost, on its way there or on its way back."""

            def __getattr__(self, name: str) -> Any:
                real = getattr(whole, name)
                if name not in ("create", "apply"):
                    return real

                async def flaky(*args: Any, **kwargs: Any) -> Any:
                    failures.append(name)
                    if len(failures) % 6 == 3:
                        raise Unavailable("lost on its way there")
                    result = await real(*args, **kwargs)
                    if len(failures) % 6 == 5:
                        raise Unavailable("lost on its way back")
                    return result

                return flaky

        fresh._creation._client = Failing()
        for _ in range(8):
            outcome = await w.p.reconcile(fresh, MS)
            assert outcome.error is None or isinstance(outcome.error, ApiError)
        machines = {m.metadata.name for m in await w.machines()}
        assert len(machines) == 2
        for kind in (CONFIG, INFRA):
            page = await w.client.list(kind, Query(namespace="default"))
            assert {each.name for each in page.items} == machines


@virtual
async def test_timeouts_reach_machines_that_are_being_deleted() -> None:
    async with workers(cluster(), machine_set(1), seconds=600) as w:
        await w.p.until(MachineSet, MS, lambda s: s.status.replicas == 1, 60)
        await w.client.delete(MachineSet, MS)
        await w.p.settle()
        [machine] = await w.machines()
        assert machine.metadata.deletion_timestamp
        await w.patch(MachineSet, MS, spec={"template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 7}}}})
        await w.p.settle()
        [machine] = await w.machines()
        assert machine.spec.deletion.node_drain_timeout_seconds == 7
        waiting = await w.client.get(MachineSet, MS)
        assert machine.metadata.name in said(waiting, "Deleting")[2]


@virtual
async def test_a_paused_set_does_nothing_and_says_so() -> None:
    async with workers(cluster(paused=True), machine_set(1)) as w:
        found = await w.p.until(MachineSet, MS, lambda s: s.status.conditions, 60)
        assert said(found, "Paused")[0] == "True"
        assert not await w.machines()
        await w.patch(Cluster, Key("default", "c1"), spec={"paused": None})
        assert said(await running(w, 1), "Paused")[0] == "False"


@pytest.mark.parametrize("order", ["Newest", "Oldest"])
def test_deletion_order_is_by_age(order: str) -> None:
    @virtual
    async def run() -> None:
        async with workers(cluster(), machine_set(1, spec={"deletion": {"order": order}}), seconds=3600) as w:
            await running(w, 1, 7300)
            [first] = await w.machines()
            await w.patch(MachineSet, MS, spec={"replicas": 2})
            await w.p.until(MachineSet, MS, lambda s: s.status.available_replicas == 2, 7300)
            await w.patch(MachineSet, MS, spec={"replicas": 1})
            await w.p.until(MachineSet, MS, lambda s: s.status.replicas == 1, 7300)
            [left] = await w.machines()
            assert (left.metadata.name == first.metadata.name) is (order == "Newest")

    run()
