"""A Cluster from a class goes to another version: the control plane first, workers one after the other."""

from __future__ import annotations

from typing import Any

import pytest

from campaign import CAMPAIGN
from capikit import blueprint
from capikit.blueprint import control_plane, deployments, machines, steady
from capikit.harness import NAMESPACE, Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from scenario.topology.look import Topologies
from scenario.topology.record import Record

DEFER = "topology.cluster.x-k8s.io/defer-upgrade"
HOLD = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
CONCURRENCY = "topology.cluster.x-k8s.io/upgrade-concurrency"
BLOCK = "before-upgrade.hook.cluster.cluster.x-k8s.io/backup"


@virtual
async def test_the_control_plane_comes_first_and_then_workers_in_their_order() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"b": 2, "a": 1})
        with Record(h) as record:
            await t.topology({"version": "v1.31.0"})
            await steady(h, "one", 1, {"b": 2, "a": 1}, "v1.31.0")
        # Each begins when the one before has ended.
        order = [which for which, _ in record.told("v1.31.0")]
        assert order == ["", "b", "a"]
        assert record.last_machine("", "v1.31.0") < record.first_machine("b", "v1.31.0")
        assert record.last_machine("b", "v1.31.0") < record.first_machine("a", "v1.31.0")
        assert record.most_at_once() == 1
        assert await t.templates() == await t.used_templates()
        versions = {each.spec.version for each in await h.machines()}
        assert versions == {"v1.31.0"}


@virtual
async def test_several_workers_at_once_if_the_cluster_says_so() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1, "b": 1, "c": 1}, annotations={CONCURRENCY: "2"})
        with Record(h) as record:
            await t.topology({"version": "v1.31.0"})
            await steady(h, "one", 1, {"a": 1, "b": 1, "c": 1}, "v1.31.0")
        assert record.most_at_once() == 2
        assert [which for which, _ in record.told("v1.31.0")] == ["", "a", "b", "c"]


@virtual
async def test_one_that_defers_stays_and_one_that_holds_stops_all_after_it() -> None:
    async with harness() as h, Topologies(h) as t:
        names = {"a": 1, "b": 1, "c": 1, "d": 1}
        await t.make(1, names)
        deferred = t.worker("a", 1, metadata={"annotations": {DEFER: ""}})
        held = t.worker("c", 1, metadata={"annotations": {HOLD: ""}})
        await t.topology({"version": "v1.31.0", **_listed(deferred, t.worker("b", 1), held, t.worker("d", 1))})
        await h.until(Cluster, "one", lambda c: _reason(c) == "ClusterUpgrading")
        await t.quiet()
        old, new = {"v1.30.0"}, {"v1.31.0"}
        assert await _versions(h) == {"": new, "a": old, "b": new, "c": old, "d": old}
        with pytest.raises(Invalid, match="is not finished"):
            await t.topology({"version": "v1.32.0"})
        await t.topology(_listed(deferred, *(t.worker(name, 1) for name in "bcd")))
        await h.until(Cluster, "one", lambda c: _reason(c) == "MachineDeploymentsUpgradeDeferred", timeout=3600)
        await t.quiet()
        assert await _versions(h) == {"": new, "a": old, "b": new, "c": new, "d": new}
        await t.topology(_listed(*(t.worker(name, 1) for name in names)))
        await steady(h, "one", 1, names, "v1.31.0")


def _listed(*workers: dict[str, Any]) -> dict[str, Any]:
    return {"workers": {"machineDeployments": list(workers)}}


@virtual
async def test_an_annotation_keeps_the_upgrade_from_beginning() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        await t.topology({"version": "v1.31.0"}, annotations={BLOCK: "yes"})
        await t.quiet()
        cluster = await h.until(Cluster, "one", lambda c: BLOCK in _message(c))
        assert (await control_plane(h, "one")).spec.version == "v1.30.0"
        assert cluster.spec.topology.version == "v1.31.0"
        await h.patch(Cluster, "one", {"metadata": {"annotations": {BLOCK: None}}})
        await steady(h, "one", 1, {"a": 1}, "v1.31.0")


@virtual
async def test_two_minor_versions_are_gone_through_one_by_one() -> None:
    async with harness() as h:
        await blueprint.have_class(h, kubernetesVersions=["v1.29.9", "v1.30.0", "v1.31.0", "v1.31.4", "v1.32.1"])
        t = Topologies(h)
        await t.make(1, {"a": 1})
        with Record(h) as record:
            await t.topology({"version": "v1.32.1"})
            planned = await h.until(Cluster, "one", lambda c: bool(c.status.control_plane.upgrade_plan))
            assert [each.version for each in planned.status.control_plane.upgrade_plan][-2:] == ["v1.31.4", "v1.32.1"]
            await steady(h, "one", 1, {"a": 1}, "v1.32.1")
        # Workers may stay behind by more than one version: they are replaced once.
        assert [version for which, version in record.steps() if which == ""] == ["v1.31.4", "v1.32.1"]
        assert [version for which, version in record.steps() if which == "a"] == ["v1.32.1"]
        done = await h.until(Cluster, "one", blueprint.reconciled)
        assert done.status.control_plane.upgrade_plan == []


@pytest.mark.skipif(not CAMPAIGN, reason="tables show it in no time; make campaign runs it")
@virtual
async def test_workers_go_along_where_they_would_fall_behind_too_far() -> None:
    versions = ["v1.28.0", "v1.29.0", "v1.30.0", "v1.31.0", "v1.32.0"]
    async with harness() as h:
        await blueprint.have_class(h, kubernetesVersions=versions)
        t = Topologies(h)
        await t.make(1, {"a": 1}, "v1.28.0")
        with Record(h) as record:
            await t.topology({"version": "v1.32.0"})
            await steady(h, "one", 1, {"a": 1}, "v1.32.0", timeout=7200)
        assert [version for which, version in record.steps() if which == ""] == versions[1:]
        steps = [version for which, version in record.steps() if which == "a"]
        assert steps[-1] == "v1.32.0"
        assert len(steps) == 2
        assert record.widest_skew() <= 3


@virtual
async def test_a_change_that_comes_with_the_version_waits_with_it() -> None:
    """Workers are replaced once, for both."""
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        made = len(h.infra.created)
        await t.topology({"version": "v1.31.0", "variables": [{"name": "image", "value": "debian"}]})
        await steady(h, "one", 1, {"a": 1}, "v1.31.0")
        await t.quiet()
        assert len(h.infra.created) == made + 2
        assert (await blueprint.infra_template(h, (await deployments(h, "one"))["a"]))["image"] == "debian"


@virtual
async def test_a_deployment_that_is_added_during_an_upgrade_comes_with_the_new_version() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        with Record(h) as record:
            await t.topology(
                {"version": "v1.31.0", "workers": {"machineDeployments": [t.worker("a", 1), t.worker("b", 1)]}}
            )
            await h.until(Cluster, "one", blueprint.reconciled, timeout=3600)
            await steady(h, "one", 1, {"a": 1, "b": 1}, "v1.31.0")
        assert {version for which, version in record.steps() if which == "b"} == {"v1.31.0"}
        assert record.last_machine("", "v1.31.0") < record.first_machine("b", "v1.31.0")


async def _versions(h: Harness) -> dict[str, set[str]]:
    found = {"": {each.spec.version for each in (await machines(h, "one")).values()}}
    for name in await deployments(h, "one"):
        found[name] = {each.spec.version for each in (await machines(h, "one", name)).values()}
    return found


def _condition(cluster: Cluster) -> dict[str, Any]:
    return next((dict(c) for c in cluster.status.conditions if c["type"] == "TopologyReconciled"), {})


def _reason(cluster: Cluster) -> str:
    found = _condition(cluster)
    return str(found.get("reason", "")) if found.get("observedGeneration") == cluster.metadata.generation else ""


def _message(cluster: Cluster) -> str:
    return str(_condition(cluster).get("message", ""))


@pytest.mark.parametrize("version", ["v1.31.0", "v1.29.0"])
def test_workers_whose_version_somebody_changed_get_theirs_back_and_everything_else_goes_on(version: str) -> None:
    @virtual
    async def run() -> None:
        async with harness() as h, Topologies(h) as t:
            await t.make(1, {"a": 1})
            before = {each.metadata.name for each in await h.machines()}
            (made,) = (await deployments(h, "one")).values()
            body = {"spec": {"template": {"spec": {"version": version}}}}
            await h.patch(MachineDeployment, made.metadata.name, body)
            await h.until(MachineDeployment, made.metadata.name, lambda d: d.spec.template.spec.version == "v1.30.0")
            await h.until(Cluster, "one", blueprint.reconciled)
            assert before == {each.metadata.name for each in await h.machines()}
            await t.topology(_listed(t.worker("a", 2)))
            await steady(h, "one", 1, {"a": 2}, "v1.30.0")
            await t.topology({"version": "v1.31.0"})
            await steady(h, "one", 1, {"a": 2}, "v1.31.0")

    run()


@virtual
async def test_workers_that_wait_for_their_version_are_scaled_and_labelled_all_the_same() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        deferred = {"annotations": {DEFER: ""}, "labels": {"team": "blue"}}
        await t.topology({"version": "v1.31.0", **_listed(t.worker("a", 1, metadata=deferred))})
        await h.until(Cluster, "one", lambda c: _reason(c) == "MachineDeploymentsUpgradeDeferred", timeout=3600)
        (made,) = (await deployments(h, "one")).values()
        assert made.metadata.labels["team"] == "blue"
        await t.topology(_listed(t.worker("a", 3, metadata=deferred)))
        found = await h.until(MachineDeployment, made.metadata.name, lambda d: d.spec.replicas == 3)
        assert found.spec.template.spec.version == "v1.30.0"
        assert found.spec.template.spec.infrastructure_ref == made.spec.template.spec.infrastructure_ref


@virtual
async def test_a_control_plane_that_somebody_took_ahead_is_reported_and_the_topology_can_follow() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        plane = await control_plane(h, "one")
        await h.plane.stop()
        await h.patch(type(plane), plane.metadata.name, {"spec": {"version": "v1.31.0"}})
        status = {"versions": [{"version": "v1.31.0", "replicas": 1}], "version": "v1.31.0"}
        key = Key(NAMESPACE, plane.metadata.name)
        await h.client.patch(type(plane), key, MergePatch({"status": status}), subresource="status")
        await h.restart()
        text = "set spec.topology.version to v1.31.0"
        await h.until(Cluster, "one", lambda c: text in _message(c))
        await t.topology({"version": "v1.31.0"})
        await steady(h, "one", 1, {"a": 1}, "v1.31.0")
