"""ClusterClasses and topologies on a real API: one reconcile at a time, and requests that are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from capikit import blueprint, generic, manifest
from capikit.harness import Harness, harness, make_hooks
from capikit.outside import prepare, serving
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.core.clusterclass.reconciler import ClassReconciler
from homeport.machinery import condition
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Reconciled, plane, virtual

CLASS = Key("default", blueprint.CLASS)
ONE = Key("default", "one")


class Classes:
    """A plane without running controllers, and the one of classes to run by hand."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.client = h.client

    async def reconcile(self) -> Reconciled:
        manager = self.h.plane.manager = Manager(self.h.plane.server.client(), clock=self.h.plane.clock)
        reconciler = ClassReconciler(Capi.make(manager))
        manager.add(reconciler.controller)
        done: Reconciled = await self.h.plane.reconcile(reconciler, CLASS)
        return done

    async def cluster_class(self) -> ClusterClass:
        found: ClusterClass = await self.client.get(ClusterClass, CLASS)
        return found

    async def said(self, kind: str) -> dict[str, Any]:
        found = condition.find((await self.cluster_class()).status.conditions, kind)
        assert found is not None
        return dict(found)

    async def cluster(self, change: Any = None, **more: Any) -> Any:
        (made,) = await self.h.plane.have(blueprint.topology("one", **more))
        return made

    async def change(self, body: dict[str, Any]) -> Any:
        return await self.client.patch(Cluster, ONE, MergePatch(body))


@asynccontextmanager
async def classes(*, have: bool = True, **spec: Any) -> AsyncIterator[Classes]:
    async with harness(start=False) as h:
        if have:
            await h.plane.have(*blueprint.whole_class(**spec))
        yield Classes(h)


async def fields(refused: Any) -> list[str]:
    with pytest.raises(Invalid) as found:
        await refused
    return [cause.field for cause in found.value.causes]


# -- the controller --------------------------------------------------------------------------------------------------


@virtual
async def test_a_class_owns_its_templates_and_tells_its_variables() -> None:
    async with classes() as c:
        done = await c.reconcile()
        assert (done.wait, done.error) == (None, None)
        found = await c.cluster_class()
        assert found.status.observed_generation == found.metadata.generation
        assert [(v.name, v.definitions[0].from_) for v in found.status.variables] == [
            ("audit", "inline"),
            ("image", "inline"),
            ("machine", "inline"),
        ]
        states = {each["type"]: each["status"] for each in found.status.conditions}
        assert states == {"VariablesReady": "True", "RefVersionsUpToDate": "True", "Paused": "False"}
        for kind in (generic.TEMPLATE, generic.CLUSTER_TEMPLATE, blueprint.CONFIG_TEMPLATE):
            for template in (await c.client.list(kind)).items:
                (owner,) = template.metadata["ownerReferences"]
                assert (owner["kind"], owner["name"], owner["uid"]) == ("ClusterClass", "plain", found.metadata.uid)
                assert "controller" not in owner


@virtual
async def test_a_second_look_writes_nothing() -> None:
    async with classes() as c:
        await c.reconcile()
        assert (await c.reconcile()).written == ()


@virtual
async def test_a_template_that_is_missing_is_named_and_the_class_is_not_ready() -> None:
    async with classes(have=False) as c:
        await c.h.plane.have(*blueprint.templates()[1:], blueprint.cluster_class())
        done = await c.reconcile()
        assert done.wait is not None
        said = await c.said("RefVersionsUpToDate")
        assert (said["status"], said["reason"]) == ("False", "TemplatesNotUsable")
        assert "spec.infrastructure.templateRef: GenericClusterTemplate plain does not exist" in said["message"]
        found = await c.cluster_class()
        assert found.status.observed_generation == found.metadata.generation
        await c.h.plane.have(blueprint.templates()[0])
        assert (await c.reconcile()).wait is None
        assert (await c.said("RefVersionsUpToDate"))["status"] == "True"


@virtual
async def test_a_kind_that_nobody_serves_is_reported() -> None:
    async with classes(have=False) as c:
        made = blueprint.cluster_class(patches=None)
        made["spec"]["infrastructure"]["templateRef"]["kind"] = "OtherClusterTemplate"
        await c.h.plane.have(*blueprint.templates(), made)
        assert (await c.reconcile()).wait is not None
        assert "OtherClusterTemplate" in (await c.said("RefVersionsUpToDate"))["message"]


@virtual
async def test_an_old_version_of_a_template_is_reported_with_the_one_to_use() -> None:
    async with classes(have=False) as c:
        made = blueprint.cluster_class(patches=None)
        made["spec"]["controlPlane"]["templateRef"]["apiVersion"] = "controlplane.cluster.x-k8s.io/v1beta1"
        await c.h.plane.have(*blueprint.templates(), made)
        assert (await c.reconcile()).wait is None
        said = await c.said("RefVersionsUpToDate")
        assert (said["status"], said["reason"]) == ("False", "RefVersionsNotUpToDate")
        assert "use v1beta2" in said["message"]
        assert blueprint.class_ready(await c.cluster_class())


@virtual
async def test_a_paused_class_is_left_alone() -> None:
    async with classes() as c:
        pause = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await c.client.patch(ClusterClass, CLASS, MergePatch(pause))
        await c.reconcile()
        found = await c.cluster_class()
        assert [(each["type"], each["status"]) for each in found.status.conditions] == [("Paused", "True")]
        assert found.status.variables == []


# -- classes in use --------------------------------------------------------------------------------------------------


@virtual
async def test_a_class_in_use_is_not_deleted_and_keeps_its_kinds() -> None:
    async with classes() as c:
        await c.cluster()
        assert await fields(c.client.delete(ClusterClass, CLASS)) == ["metadata.name"]
        other = {"spec": {"infrastructure": {"templateRef": {"kind": "OtherClusterTemplate"}}}}
        refused = c.client.patch(ClusterClass, CLASS, MergePatch(other))
        assert await fields(refused) == ["spec.infrastructure.templateRef.kind"]
        offered = {"spec": {"kubernetesVersions": ["v1.31.0"]}}
        refused = c.client.patch(ClusterClass, CLASS, MergePatch(offered))
        assert await fields(refused) == ["spec.kubernetesVersions"]
        await c.client.delete(Cluster, ONE)
        await c.change({"metadata": {"finalizers": []}})
        await c.client.delete(ClusterClass, CLASS)


# -- Clusters --------------------------------------------------------------------------------------------------------


@virtual
async def test_a_cluster_gets_the_defaults_of_its_class_before_anything_looked_at_the_class() -> None:
    async with classes() as c:
        override = {"overrides": [{"name": "machine", "value": {"cores": 8}}]}
        workers = [blueprint.deployment("a", variables=override)]
        made = await c.cluster(version="1.30.0", workers=workers, variables={"machine": {"cores": 4}})
        topology = made["spec"]["topology"]
        assert topology["version"] == "v1.30.0"
        assert topology["variables"] == [
            {"name": "machine", "value": {"cores": 4, "memory": "4Gi"}},
            {"name": "audit", "value": False},
            {"name": "image", "value": "ubuntu"},
        ]
        held = topology["workers"]["machineDeployments"][0]["variables"]["overrides"]
        assert held == [{"name": "machine", "value": {"cores": 8, "memory": "4Gi"}}]


@virtual
async def test_defaults_do_not_make_a_new_generation_when_nothing_changed() -> None:
    async with classes() as c:
        made = await c.cluster()
        again = await c.change({"spec": {"topology": {"variables": []}}})
        assert again.metadata.generation == made["metadata"]["generation"]
        assert again.metadata.resource_version == made["metadata"]["resourceVersion"]


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"machine": {"cores": 65}}, "spec.topology.variables[machine].value.cores", "64"),
    ({"machine": {"core": 4}}, "spec.topology.variables[machine].value.core", "does not define this field"),
    ({"size": "big"}, "spec.topology.variables[size]", "audit, image, machine"),
]


@virtual
async def test_wrong_values_are_refused_naming_the_field() -> None:
    async with classes() as c:
        for variables, field, says in WRONG:
            with pytest.raises(Invalid) as found:
                await c.cluster(variables=variables)
            (cause,) = found.value.causes
            assert cause.field == field
            assert says in cause.message


@virtual
async def test_what_does_not_fit_the_class_is_refused() -> None:
    async with classes(kubernetesVersions=["v1.30.0", "v1.31.0"]) as c:
        override = {"overrides": [{"name": "image", "value": 1}]}
        workers: list[dict[str, Any]] = [
            {"class": "other", "name": "a"},
            blueprint.deployment("b", healthCheck={"enabled": True}),
            blueprint.deployment(
                "c", metadata={"annotations": {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "1"}}
            ),
            blueprint.deployment("d", variables=override),
        ]
        assert sorted(await fields(c.cluster(version="v1.29.0", workers=workers))) == [
            "spec.topology.version",
            "spec.topology.workers.machineDeployments[0].class",
            "spec.topology.workers.machineDeployments[1].healthCheck.enabled",
            "spec.topology.workers.machineDeployments[2].replicas",
            "spec.topology.workers.machineDeployments[3].variables.overrides[image].value",
        ]  # fmt: skip


@virtual
async def test_topologies_that_are_refused() -> None:
    taint = {"key": "node.kubernetes.io/x", "effect": "NoSchedule", "propagation": "Always"}
    concurrency = "topology.cluster.x-k8s.io/upgrade-concurrency"
    first = "spec.topology.workers.machineDeployments[0]"
    async with classes() as c:
        assert await fields(c.cluster(version="v1.30")) == ["spec.topology.version"]
        assert await fields(c.cluster(annotations={concurrency: "0"})) == [f"metadata.annotations[{concurrency}]"]
        workers = [blueprint.deployment("a", taints=[taint])]
        assert await fields(c.cluster(workers=workers)) == [f"{first}.taints[0].key"]


@virtual
async def test_what_is_no_topology_at_all_is_left_to_the_schema() -> None:
    good = blueprint.topology("one")["spec"]["topology"]
    odd: list[Any] = [
        "x",
        {"topology": "x"},
        {"topology": {**good, "classRef": "plain"}},
        {"topology": {**good, "variables": [1]}},
        {"topology": {**good, "version": 1.3}},
        {"topology": {**good, "workers": {"machineDeployments": [None]}}},
    ]
    async with classes() as c:
        for spec in odd:
            assert await fields(c.h.plane.have({**blueprint.topology("one"), "spec": spec}))


@virtual
async def test_a_cluster_may_come_before_its_class() -> None:
    async with classes(have=False) as c:
        made = await c.cluster(variables={"anything": 1})
        assert made["spec"]["topology"]["variables"] == [{"name": "anything", "value": 1}]
        # What is no change of the topology is always possible.
        await c.change({"metadata": {"labels": {"a": "b"}}})


@virtual
async def test_a_topology_stays_and_does_not_come_later() -> None:
    async with classes() as c:
        await c.cluster()
        assert await fields(c.change({"spec": {"topology": None, "infrastructureRef": REF}})) == ["spec.topology"]
        plain = blueprint.topology("two")
        plain["spec"] = {"infrastructureRef": REF}
        await c.h.plane.have(plain)
        topology = {"spec": {"topology": blueprint.topology("two")["spec"]["topology"]}}
        late = c.client.patch(Cluster, Key("default", "two"), MergePatch(topology))
        assert await fields(late) == ["spec.topology.classRef"]
        unsafe = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check"
        await c.client.patch(
            Cluster, Key("default", "two"), MergePatch({"metadata": {"annotations": {unsafe: ""}}, **topology})
        )


REF = {"apiGroup": generic.GROUP, "kind": "GenericCluster", "name": "one"}


@virtual
async def test_the_class_changes_only_to_one_that_the_cluster_can_follow() -> None:
    async with classes() as c:
        await c.cluster()
        assert await fields(c.change({"spec": {"topology": {"classRef": {"name": "none"}}}})) == [
            "spec.topology.classRef"
        ]
        other = blueprint.cluster_class("other", templates="plain", patches=None)
        other["spec"]["infrastructure"]["templateRef"]["kind"] = "OtherClusterTemplate"
        fewer = blueprint.cluster_class("fewer", templates="plain", variables=None, patches=None)
        good = blueprint.cluster_class("good", templates="plain")
        await c.h.plane.have(other, fewer, good)
        refused = c.change({"spec": {"topology": {"classRef": {"name": "other"}}}})
        assert await fields(refused) == ["spec.topology.classRef"]
        refused = c.change({"spec": {"topology": {"classRef": {"name": "fewer"}}}})
        assert await fields(refused) == [f"spec.topology.variables[{each}]" for each in ("audit", "image", "machine")]
        await c.change({"spec": {"topology": {"classRef": {"name": "good"}}}})


def version(text: str) -> dict[str, Any]:
    return {"spec": {"topology": {"version": text}}}


@virtual
async def test_versions_go_up_step_by_step() -> None:
    async with classes() as c:
        await c.cluster()
        for wanted in ("v1.32.0", "v1.29.9", "v2.0.0"):
            assert await fields(c.change(version(wanted))) == ["spec.topology.version"]
        await c.change(version("v1.30.1"))
        await c.change(version("v1.31.0"))
        unsafe = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check"
        await c.change({"metadata": {"annotations": {unsafe: ""}}, **version("v1.29.0")})


@virtual
async def test_versions_that_the_class_lists_may_be_further_away() -> None:
    async with classes(kubernetesVersions=["v1.30.0", "v1.31.0", "v1.32.0"]) as c:
        await c.cluster()
        await c.change(version("v1.32.0"))


@virtual
async def test_the_version_stays_until_the_cluster_is_at_it() -> None:
    async with classes() as c:
        await c.cluster()
        plane = manifest.control_plane("one", 1, "v1.30.0")
        await c.h.plane.have(plane)
        key = Key("default", "one-cp")
        await c.change({"spec": {"controlPlaneRef": {**REF, "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "one-cp"}}})  # fmt: skip
        assert await fields(c.change(version("v1.31.0"))) == ["spec.topology.version"]
        done = {"status": {"versions": [{"version": "v1.30.0", "replicas": 1}]}}
        await c.client.patch(KubeadmControlPlane, key, MergePatch(done), subresource="status")
        workers = manifest.workers("one", 1, "v1.29.0")[2]
        workers["metadata"]["labels"] = {blueprint.CLUSTER_LABEL: "one", "topology.cluster.x-k8s.io/owned": ""}
        await c.h.plane.have(workers)
        with pytest.raises(Invalid, match=r"MachineDeployment one-md-0 is not at v1\.30\.0 yet"):
            await c.change(version("v1.31.0"))
        template = {"spec": {"template": {"spec": {"version": "v1.30.0"}}}}
        await c.client.patch(MachineDeployment, Key("default", "one-md-0"), MergePatch(template))
        await c.change(version("v1.31.0"))


# -- by webhook ------------------------------------------------------------------------------------------------------


async def test_where_admission_is_a_webhook_it_looks_up_the_same() -> None:
    async with plane() as p:
        hooks = make_hooks(p.client)
        async with serving(hooks, p.client) as webhooks:
            await prepare(p.client, hooks, [*definitions(), *generic.definitions()], webhooks)
            await p.have(*blueprint.whole_class())
            assert await fields(p.have(blueprint.topology("one", variables={"machine": {"cores": 0}}))) == [
                "spec.topology.variables[machine].value.cores"
            ]
            (made,) = await p.have(blueprint.topology("one", version="1.30.0"))
            topology = made["spec"]["topology"]
            assert topology["version"] == "v1.30.0"
            assert [each["name"] for each in topology["variables"]] == ["audit", "image", "machine"]
            assert await fields(p.client.delete(ClusterClass, CLASS)) == ["metadata.name"]
            assert await fields(p.client.patch(Cluster, ONE, MergePatch(version("v1.32.0")))) == [
                "spec.topology.version"
            ]
