"""A Cluster is made from a class, scaled, changed and deleted."""

from __future__ import annotations

import pytest

from capikit import blueprint, generic
from capikit.blueprint import CLASS, deployments, machines, steady
from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.api.meta import Resource
from homeport.client.errors import Invalid
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.capi.shape import shape
from scenario.topology.look import Topologies


@virtual
async def test_a_cluster_comes_up_from_its_class() -> None:
    async with yard() as y:
        await blueprint.have_class(y)
        await y.plane.have(blueprint.topology("one", 1, {"a": 2, "b": 1}))
        await steady(y, "one", 1, {"a": 2, "b": 1})
        cluster = await y.available("one")
        assert cluster.spec.infrastructure_ref is not None
        plane = await blueprint.control_plane(y, "one")
        for obj in (plane, *(await deployments(y, "one")).values()):
            assert obj.metadata.name.startswith("one-")
            assert obj.metadata.labels["topology.cluster.x-k8s.io/owned"] == ""
            (owner,) = obj.metadata.owner_references
            assert (owner.kind, owner.name) == ("Cluster", "one")
        assert plane.spec.replicas == 1
        assert len(y.infra.machines) == 4 == len(y.infra.created)
        secrets = await y.client.list(generic._SECRET)
        assert not [each.name for each in secrets.items if each.name.endswith("-shim")]


@virtual
async def test_a_cluster_that_comes_before_its_class_waits_for_it() -> None:
    async with yard() as y:
        await y.plane.have(blueprint.topology("one", 1, {"a": 1}))
        waits = await y.until(
            Cluster, "one", lambda c: condition.find(c.status.conditions, "TopologyReconciled") is not None
        )
        said = condition.find(waits.status.conditions, "TopologyReconciled")
        assert said is not None
        assert (said["status"], said["reason"]) == ("False", "ClusterClassNotReconciled")
        assert "default/plain" in said["message"]
        await blueprint.have_class(y)
        await steady(y, "one", 1, {"a": 1})
        # What admission could not fill in is filled in now.
        cluster = await y.client.get(Cluster, Key("default", "one"))
        assert {each.name for each in cluster.spec.topology.variables} <= {"audit", "image", "machine"}


@virtual
async def test_a_class_may_be_in_another_namespace() -> None:
    async with yard() as y:
        await y.plane.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}})
        for each in blueprint.whole_class():
            each["metadata"]["namespace"] = "shared"
            await y.plane.have(each)
        shared = {"name": CLASS, "namespace": "shared"}
        await y.plane.have(blueprint.topology("one", 1, {"a": 1}, classRef=shared))
        await steady(y, "one", 1, {"a": 1})
        cluster = await y.client.get(Cluster, Key("default", "one"))
        assert [each.name for each in cluster.spec.topology.variables] == ["audit", "image", "machine"]
        with pytest.raises(Invalid, match="default/one"):
            await y.client.delete(ClusterClass, Key("shared", CLASS))


@virtual
async def test_scaling_changes_counts_and_nothing_else() -> None:
    async with yard() as y, Topologies(y) as t:
        await t.make(1, {"a": 1})
        before = await t.templates()
        old = {*await machines(y, "one"), *await machines(y, "one", "a")}
        await t.topology({"workers": {"machineDeployments": [t.worker("a", 3)]}})
        await steady(y, "one", 1, {"a": 3})
        assert old <= {*await machines(y, "one"), *await machines(y, "one", "a")}
        await t.topology({"workers": {"machineDeployments": [t.worker("a", 0)]}})
        await steady(y, "one", 1, {"a": 0})
        assert await t.templates() == before
        assert len(y.infra.created) == 4


@virtual
async def test_a_deployment_that_is_added_and_one_that_is_removed() -> None:
    async with yard() as y, Topologies(y) as t:
        await t.make(1, {"a": 1, "b": 1})
        kept = await machines(y, "one", "b")
        await t.topology({"workers": {"machineDeployments": [t.worker("b", 1), t.worker("c", 2)]}})
        await t.reconciled()
        found = await deployments(y, "one")
        await y.until(type(found["c"]), found["c"].metadata.name, lambda m: m.status.available_replicas == 2)
        await t.quiet()
        await steady(y, "one", 1, {"b": 1, "c": 2})
        assert list(await machines(y, "one", "b")) == list(kept)
        assert await machines(y, "one", "a") == {}
        names = await t.templates()
        assert not [each for each in names if "-a-" in each]
        await t.topology({"workers": None})
        await t.reconciled()
        await t.quiet()
        await steady(y, "one", 1, {})
        assert len(y.infra.machines) == 1


@virtual
async def test_deleting_the_cluster_leaves_the_class_and_nothing_else() -> None:
    async with yard() as y:
        await blueprint.have_class(y)
        await y.plane.settle(quiet=30)
        before = shape(y)
        await y.plane.have(blueprint.topology("one", 1, {"a": 1}))
        await steady(y, "one", 1, {"a": 1})
        with pytest.raises(Invalid, match="default/one"):
            await y.client.delete(ClusterClass, Key("default", CLASS))
        await y.delete(Cluster, "one")
        await y.gone(Cluster, "one")
        await y.plane.settle(quiet=30)
        assert shape(y) == before
        assert not y.infra.machines
        assert not y.infra.balancers
        await y.client.delete(ClusterClass, Key("default", CLASS))
        await y.gone(ClusterClass, CLASS)
        await y.plane.settle(quiet=30)
        assert shape(y) == {}


@virtual
async def test_deleting_a_cluster_that_is_half_made_leaves_nothing() -> None:
    async with yard() as y:
        await blueprint.have_class(y)
        await y.plane.settle(quiet=30)
        before = shape(y)
        await y.plane.have(blueprint.topology("one", 3, {"a": 2}))
        await _some_machine(y)
        await y.delete(Cluster, "one")
        await y.gone(Cluster, "one")
        await y.plane.settle(quiet=30)
        assert shape(y) == before
        assert not y.infra.machines


async def _some_machine(y: Yard) -> None:
    await y.until(Cluster, "one", lambda c: c.spec.control_plane_ref is not None)


@virtual
async def test_a_namespace_goes_with_the_class_and_its_clusters() -> None:
    """The class is held by the Cluster, and both by nobody else."""
    async with yard() as y:
        await y.plane.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        for each in [*blueprint.whole_class(), blueprint.topology("one", 1, {"a": 1})]:
            each["metadata"]["namespace"] = "team"
            await y.plane.have(each)
        await y.plane.until(Cluster, Key("team", "one"), lambda c: c.status.phase == "Provisioned", 600)
        await y.client.delete(NAMESPACES, Key("", "team"))
        await y.plane.gone(NAMESPACES, Key("", "team"), 3600)
        assert not y.infra.machines


@virtual
async def test_replicas_that_an_autoscaler_counts_are_left_to_it() -> None:
    sizes = {
        f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{end}-size": n for end, n in (("min", "1"), ("max", "5"))
    }
    async with yard() as y:
        await blueprint.have_class(y)
        scaled = blueprint.deployment("a", None, metadata={"annotations": sizes})
        await y.plane.have(blueprint.topology("one", 1, [scaled]))
        await steady(y, "one", 1, {"a": 1})
        (deployment,) = (await deployments(y, "one")).values()
        await y.patch(type(deployment), deployment.metadata.name, {"spec": {"replicas": 2}})
        await y.plane.settle(quiet=30)
        await steady(y, "one", 1, {"a": 2})
        # A change of the topology does not bring back what the autoscaler left.
        variables = [{"name": "machine", "value": {"cores": 8}}]
        await y.patch(Cluster, "one", {"spec": {"topology": {"variables": variables}}})
        await y.plane.settle(quiet=30)
        await steady(y, "one", 1, {"a": 2})


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
