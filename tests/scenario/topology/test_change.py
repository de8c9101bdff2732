"""What is changed rolls out, and nothing else does: variables, patches, templates, and the class itself."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from capikit import blueprint, generic
from capikit.blueprint import CLASS, deployments, infra_template, machines, steady
from capikit.harness import harness
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.client.errors import Invalid
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from scenario.topology.look import Topologies


@virtual
async def test_patches_make_templates_from_variables_and_from_facts_about_the_cluster() -> None:
    async with harness() as h, Topologies(h) as t:
        override = {"overrides": [{"name": "machine", "value": {"cores": 16}}]}
        workers = [t.worker("a", 1), t.worker("b", 1, variables=override)]
        await h.plane.have(blueprint.topology("one", 1, workers, variables={"image": "debian"}))
        await steady(h, "one", 1, {"a": 1, "b": 1})
        found = await deployments(h, "one")
        assert await infra_template(h, found["a"]) == {
            "disk": "20Gi",
            "image": "debian",
            "cores": 2,
            "note": "one/a=4gi",
        }
        assert await infra_template(h, found["b"]) == {
            "disk": "20Gi",
            "image": "debian",
            "cores": 16,
            "note": "one/b=4gi",
        }
        plane = await blueprint.control_plane(h, "one")
        assert await infra_template(h, plane) == {"disk": "20Gi", "image": "debian"}
        assert plane.spec.kubeadm_config_spec.files == []  # its patch is not enabled
        # The templates of the class are as they were.
        template = await h.client.get(generic.TEMPLATE, Key("default", f"{CLASS}-worker"))
        assert template["spec"]["template"]["spec"] == {"disk": "20Gi"}


@virtual
async def test_a_variable_rolls_out_only_what_it_changes() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1, "b": 1})
        plane, a, b = await machines(h, "one"), await machines(h, "one", "a"), await machines(h, "one", "b")
        override = {"overrides": [{"name": "machine", "value": {"cores": 8}}]}
        await t.topology({"workers": {"machineDeployments": [t.worker("a", 1, variables=override), t.worker("b", 1)]}})
        await steady(h, "one", 1, {"a": 1, "b": 1})
        await t.quiet()
        assert list(await machines(h, "one")) == list(plane)
        assert list(await machines(h, "one", "b")) == list(b)
        assert not {*a} & {*await machines(h, "one", "a")}
        assert (await infra_template(h, (await deployments(h, "one"))["a"]))["cores"] == 8
        # A rollout leaves no template behind that nobody uses.
        assert await t.templates() == await t.used_templates()
        # The control plane alone.
        a = await machines(h, "one", "a")
        await t.variables(audit=True)
        await steady(h, "one", 1, {"a": 1, "b": 1})
        await t.quiet()
        assert not {*plane} & {*await machines(h, "one")}
        assert list(await machines(h, "one", "a")) == list(a)
        plane_now = await blueprint.control_plane(h, "one")
        assert [each.path for each in plane_now.spec.kubeadm_config_spec.files] == ["/etc/kubernetes/audit.yaml"]
        await t.variables(audit=False)
        await steady(h, "one", 1, {"a": 1, "b": 1})
        assert (await blueprint.control_plane(h, "one")).spec.kubeadm_config_spec.files == []


@virtual
async def test_a_wrong_value_is_refused_and_changes_nothing() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        still = await t.quiet()
        with pytest.raises(Invalid, match=r"spec\.topology\.variables\[machine\]\.value\.cores"):
            await t.variables(machine={"cores": 0})
        assert await t.quiet() == still


@virtual
async def test_metadata_goes_down_without_a_rollout() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        before, names = await t.machines(), await t.templates()
        labels = {"labels": {"example.com/team": "blue"}}
        await t.topology(
            {
                "controlPlane": {"metadata": labels},
                "workers": {"machineDeployments": [t.worker("a", 1, metadata=labels)]},
            }
        )
        await steady(h, "one", 1, {"a": 1})
        await t.quiet()
        assert await t.machines() == before
        assert await t.templates() == names
        for each in (*(await machines(h, "one")).values(), *(await machines(h, "one", "a")).values()):
            assert each.metadata.labels["example.com/team"] == "blue"


@virtual
async def test_another_template_in_the_class_rolls_out_to_every_cluster() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        await h.plane.have(blueprint.topology("two", 1, {"a": 1}))
        await steady(h, "two", 1, {"a": 1})
        planes = {name: await machines(h, name) for name in ("one", "two")}
        old = {name: await machines(h, name, "a") for name in ("one", "two")}
        await h.plane.have(blueprint.machine_template("larger", disk="40Gi"))
        spec = blueprint.cluster_class()["spec"]
        spec["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] = "larger"
        await h.patch(ClusterClass, CLASS, {"spec": spec})
        await t.quiet()
        for name in ("one", "two"):
            await steady(h, name, 1, {"a": 1})
            assert list(await machines(h, name)) == list(planes[name])
            assert not {*old[name]} & {*await machines(h, name, "a")}
            assert (await infra_template(h, (await deployments(h, name))["a"]))["disk"] == "40Gi"
        # They share a class and nothing else.
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        await steady(h, "two", 1, {"a": 1})
        assert {made.cluster for made in h.infra.machines.values()} == {"default/two"}


@virtual
async def test_a_template_that_is_changed_in_place_rolls_out_too() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        plane, old = await machines(h, "one"), await machines(h, "one", "a")
        body = {"spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {"taints": [TAINT]}}}}}}
        await h.patch(blueprint.CONFIG_TEMPLATE, f"{CLASS}-worker", body)
        await t.quiet()
        await steady(h, "one", 1, {"a": 1})
        assert list(await machines(h, "one")) == list(plane)
        assert not {*old} & {*await machines(h, "one", "a")}


TAINT = {"key": "example.com/batch", "effect": "NoSchedule"}


@virtual
async def test_another_class_rolls_out_only_what_it_changes() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        plane, old = await machines(h, "one"), await machines(h, "one", "a")
        same = blueprint.cluster_class("same", templates=CLASS)
        await h.plane.have(same)
        await h.until(ClusterClass, "same", blueprint.class_ready)
        await t.topology({"classRef": {"name": "same"}})
        await t.quiet()
        await steady(h, "one", 1, {"a": 1})
        assert (list(await machines(h, "one")), list(await machines(h, "one", "a"))) == (list(plane), list(old))
        await _other_disks(h, "other")
        await t.topology({"classRef": {"name": "other"}})
        await t.quiet()
        await steady(h, "one", 1, {"a": 1})
        assert list(await machines(h, "one")) == list(plane)
        assert not {*old} & {*await machines(h, "one", "a")}
        assert (await infra_template(h, (await deployments(h, "one"))["a"]))["disk"] == "80Gi"
        # Nobody uses the first any more.
        await h.client.delete(ClusterClass, Key("default", CLASS))


async def _other_disks(h: Any, name: str) -> None:
    """A class with other disks for workers, and everything else as it was."""
    made = copy.deepcopy(blueprint.cluster_class(name, templates=CLASS))
    made["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] = "disks"
    await h.plane.have(blueprint.machine_template("disks", disk="80Gi"), made)
    await h.until(ClusterClass, name, blueprint.class_ready)


@virtual
async def test_what_somebody_changed_by_hand_is_put_back_and_what_is_theirs_stays() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        (deployment,) = (await deployments(h, "one")).values()
        before = await t.machines()
        name = deployment.metadata.name
        await h.patch(type(deployment), name, {"spec": {"replicas": 3}, "metadata": {"annotations": {"mine": "1"}}})
        await t.quiet()
        await steady(h, "one", 1, {"a": 1})
        found = (await deployments(h, "one"))["a"]
        assert found.spec.replicas == 1
        assert found.metadata.annotations["mine"] == "1"
        assert {*await t.machines()} & {*before} == {*await t.machines()}


@virtual
async def test_a_class_whose_patch_does_not_fit_says_which_and_mends_itself() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        before = await t.machines()
        spec = blueprint.cluster_class()["spec"]
        spec["patches"][1]["definitions"][0]["jsonPatches"][0] = {"op": "remove", "path": "/spec/template/spec/none"}
        await h.patch(ClusterClass, CLASS, {"spec": spec})
        found = await h.until(Cluster, "one", lambda c: "size" in _said(c), what="the patch being named")
        assert "/spec/template/spec/none" in _said(found)
        await h.patch(ClusterClass, CLASS, {"spec": blueprint.cluster_class()["spec"]})
        await steady(h, "one", 1, {"a": 1})
        await t.quiet()
        assert await t.machines() == before


@virtual
async def test_a_template_that_is_missing_is_reported_and_nothing_is_replaced_when_it_is_back() -> None:
    async with harness() as h, Topologies(h) as t:
        await t.make(1, {"a": 1})
        before = await t.machines()
        await h.client.delete(generic.TEMPLATE, Key("default", f"{CLASS}-worker"))
        await h.until(Cluster, "one", lambda c: f"{CLASS}-worker does not exist" in _said(c))
        await t.quiet()
        await h.plane.have(blueprint.machine_template(f"{CLASS}-worker"))
        await t.quiet()
        await steady(h, "one", 1, {"a": 1})
        assert await t.machines() == before


def _said(cluster: Cluster) -> str:
    found = next((c for c in cluster.status.conditions if c["type"] == "TopologyReconciled"), {})
    return str(found.get("message", ""))
