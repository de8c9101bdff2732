"""A Cluster is made from a class, scaled, changed and deleted."""

from __future__ import annotations

import pytest

from capikit import blueprint, generic
from capikit.blueprint import CLASS, deployments, machines, steady
from capikit.harness import Harness, harness
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
    async with harness() as h:
        await blueprint.have_class(h)
        await h.plane.have(blueprint.topology("one", 1, {"a": 2, "b": 1}))
        await steady(h, "one", 1, {"a": 2, "b": 1})
        cluster = await h.available("one")
        assert cluster.spec.infrastructure_ref is not None
        plane = await blueprint.control_plane(h, "one")
        for obj in (plane, *(await deployments(h, "one")).values()):
            assert obj.metadata.name.startswith("one-")
            assert obj.metadata.labels["topology.cluster.x-k8s.io/owned"] == ""
            (owner,) = obj.metadata.owner_references
            assert (owner.kind, owner.name) == ("Cluster", "one")
        assert plane.spec.replicas == 1
        assert len(h.infra.machines) == 4 == len(h.infra.created)
        secrets = await h.client.list(generic._SECRET)
        assert not [each.name for each in secrets.items if each.name.endswith("-shim")]


@virtual
async def test_a_cluster_that_comes_before_its_class_waits_for_it() -> None:
    async with harness() as h:
        await h.plane.have(blueprint.topology("one", 1, {"a": 1}))
        waits = await h.until(
            Cluster, "one", lambda c: condition.find(c.status.conditions, "TopologyReconciled") is not None
        )
        said = condition.find(waits.status.conditions, "TopologyReconciled")
        assert said is not None
        assert (said["status"], said["reason"]) == ("False", "ClusterClassNotReconciled")
        assert "default/plain" in said["message"]
        await blueprint.have_class(h)
        await steady(h, "one", 1, {"a": 1})
        # What admission could not fill in is filled in now.
        cluster = await h.client.get(Cluster, Key("default", "one"))
        assert {each.name for each in cluster.spec.topology.variables} <= {"audit", "image", "machine"}


@virtual
async def test_a_class_may_be_in_another_namespace() -> None:
    async with harness() as h:
        await h.plane.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}})
        for each in blueprint.whole_class():
            each["metadata"]["namespace"] = "shared"
            await h.plane.have(each)
        shared = {"name": CLASS, "namespace": "shared"}
        await h.plane.have(blueprint.topology("one", 1, {"a": 1}, classRef=shared))
        await steady(h, "one", 1, {"a": 1})
        cluster = await h.client.get(Cluster, Key("default", "one"))
        assert [each.name for each in cluster.spec.topology.variables] == ["audit", "image", "machine"]
        with pytest.raises(Invalid, match="default/one"):
            await h.client.delete(ClusterClass, Key("shared", CLASS))


@virtual
async def test_scaling_changes_counts_and_nothing_else() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        before = await t.templates()
        old = {*await machines(h, "one"), *await machines(h, "one", "a")}
        await t.topology({"workers": {"machineDeployments": [t.worker("a", 3)]}})
        await steady(h, "one", 1, {"a": 3})
        assert old <= {*await machines(h, "one"), *await machines(h, "one", "a")}
        await t.topology({"workers": {"machineDeployments": [t.worker("a", 0)]}})
        await steady(h, "one", 1, {"a": 0})
        assert await t.templates() == before
        assert len(h.infra.created) == 4


@virtual
async def test_a_deployment_that_is_added_and_one_that_is_removed() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1, "b": 1})
        kept = await machines(h, "one", "b")
        await t.topology({"workers": {"machineDeployments": [t.worker("b", 1), t.worker("c", 2)]}})
        await t.reconciled()
        found = await deployments(h, "one")
        await h.until(type(found["c"]), found["c"].metadata.name, lambda m: m.status.available_replicas == 2)
        await t.quiet()
        await steady(h, "one", 1, {"b": 1, "c": 2})
        assert list(await machines(h, "one", "b")) == list(kept)
        assert await machines(h, "one", "a") == {}
        names = await t.templates()
        assert not [each for each in names if "-a-" in each]
        await t.topology({"workers": None})
        await t.reconciled()
        await t.quiet()
        await steady(h, "one", 1, {})
        assert len(h.infra.machines) == 1


@virtual
async def test_deleting_the_cluster_leaves_the_class_and_nothing_else() -> None:
    async with harness() as h:
        await blueprint.have_class(h)
        await h.plane.settle(quiet=30)
        before = shape(h)
        await h.plane.have(blueprint.topology("one", 1, {"a": 1}))
        await steady(h, "one", 1, {"a": 1})
        with pytest.raises(Invalid, match="default/one"):
            await h.client.delete(ClusterClass, Key("default", CLASS))
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        await h.plane.settle(quiet=30)
        assert shape(h) == before
        assert not h.infra.machines
        assert not h.infra.balancers
        await h.client.delete(ClusterClass, Key("default", CLASS))
        await h.gone(ClusterClass, CLASS)
        await h.plane.settle(quiet=30)
        assert shape(h) == {}


@virtual
async def test_deleting_a_cluster_that_is_half_made_leaves_nothing() -> None:
    async with harness() as h:
        await blueprint.have_class(h)
        await h.plane.settle(quiet=30)
        before = shape(h)
        await h.plane.have(blueprint.topology("one", 3, {"a": 2}))
        await _some_machine(h)
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        await h.plane.settle(quiet=30)
        assert shape(h) == before
        assert not h.infra.machines


async def _some_machine(h: Harness) -> None:
    await h.until(Cluster, "one", lambda c: c.spec.control_plane_ref is not None)


@virtual
async def test_a_namespace_goes_with_the_class_and_its_clusters() -> None:
    """The class is held by the Cluster, and both by nobody else."""
    async with harness() as h:
        await h.plane.have({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        for each in [*blueprint.whole_class(), blueprint.topology("one", 1, {"a": 1})]:
            each["metadata"]["namespace"] = "team"
            await h.plane.have(each)
        await h.plane.until(Cluster, Key("team", "one"), lambda c: c.status.phase == "Provisioned", 600)
        await h.client.delete(NAMESPACES, Key("", "team"))
        await h.plane.gone(NAMESPACES, Key("", "team"), 3600)
        assert not h.infra.machines


@virtual
async def test_replicas_that_an_autoscaler_counts_are_left_to_it() -> None:
    sizes = {
        f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{end}-size": n for end, n in (("min", "1"), ("max", "5"))
    }
    async with harness() as h:
        await blueprint.have_class(h)
        scaled = blueprint.deployment("a", None, metadata={"annotations": sizes})
        await h.plane.have(blueprint.topology("one", 1, [scaled]))
        await steady(h, "one", 1, {"a": 1})
        (deployment,) = (await deployments(h, "one")).values()
        await h.patch(type(deployment), deployment.metadata.name, {"spec": {"replicas": 2}})
        await h.plane.settle(quiet=30)
        await steady(h, "one", 1, {"a": 2})
        # A change of the topology does not bring back what the autoscaler left.
        variables = [{"name": "machine", "value": {"cores": 8}}]
        await h.patch(Cluster, "one", {"spec": {"topology": {"variables": variables}}})
        await h.plane.settle(quiet=30)
        await steady(h, "one", 1, {"a": 2})


NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
