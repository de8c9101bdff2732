"""Plans for changes of classes, templates, k0s control planes, TenantClusters and ClusterDeployments."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from homeport.api.butler.v1alpha1 import ProviderConfig
from homeport.app.rehearsal.copy import PlaneCopy, copy_plane
from homeport.app.rehearsal.plan import Plan, _settle, make_plan
from homeport.app.rehearsal.stage import _CONTROLLERS, Stage, stage
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.yaml import load_all
from homeport.platforms.k0rdent.builtin import initial_objects
from homeport.runtime.clock import LoopClock, run_virtual

SINCE = "2026-01-01T00:00:00Z"
START = 1_790_000_000.0
EXAMPLES = Path(__file__).parents[3] / "examples"
MACHINES = {
    "class": ("04-clusterclass/class.yaml", "04-clusterclass/cluster.yaml"),
    "tenant": ("09-tenant/tenant.yaml",),
    "deployment": ("10-deployment/deployment.yaml",),
    "k0s": ("11-k0s/cluster.yaml",),
}
K0RDENT = ("deployment", "standalone")  # the same with a control plane on machines


def manifest(name: str) -> str:
    if name == "standalone":
        return manifest("deployment").replace("k0s-hcp", "k0s-standalone")
    return "---\n".join((EXAMPLES / file).read_text() for file in MACHINES[name])


def changed(name: str, *texts: tuple[str, str]) -> list[dict[str, Any]]:
    text = manifest(name)
    for old, new in texts:
        assert old in text, old
        text = text.replace(old, new)
    return load_all(text)


@cache
def running(name: str) -> PlaneCopy:
    """A plane on which the example runs."""

    async def build() -> PlaneCopy:
        async with stage(LoopClock(START)) as on, on.running(controllers=_controllers(name)):
            if name in K0RDENT:
                await have_templates(on)
            for each in load_all(manifest(name)):
                result, error = await on.apply(each, "default")
                assert result == "created", error
                if each["kind"] == "ProviderConfig":
                    await probed(on, each["metadata"])
            await _settle(on, 5)
            return await copy_plane(on.client, ["default"])

    return run_virtual(build())


def _controllers(name: str) -> tuple[str, ...]:
    return (*_CONTROLLERS, "k0rdent-*") if name in K0RDENT else _CONTROLLERS


async def probed(on: Stage, meta: dict[str, Any]) -> None:
    """As if the provider had been asked."""
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": SINCE}
    images = [{"id": "1", "name": "rocky-9-cloud", "os": "rocky"}]
    status = {"ready": True, "validated": True, "provider": "nutanix", "conditions": [ready], "images": images}
    key = Key(meta["namespace"], meta["name"])
    await on.client.patch(ProviderConfig.__resource__, key, MergePatch({"status": status}), subresource="status")


async def have_templates(on: Stage) -> None:
    await on.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kcm-system"}}, "")
    for kind, body in initial_objects()[:2]:  # the controllers create the others
        await on.client.create(body, kind=kind)
    await _settle(on, 3)


def planned(name: str, objects: list[dict[str, Any]], *, delete: bool = False) -> Plan:
    return make_plan(running(name), objects, "default", START + 7200, delete=delete)


def counted(plan: Plan) -> Counter[tuple[str, str]]:
    return Counter((row.action, row.owner.split()[0]) for row in plan.machines)


def refusals(plan: Plan) -> dict[str, str]:
    return {f"{each.kind}/{each.name}": each.message for each in plan.applied if each.result == "refused"}


# -- ClusterClass ----------------------------------------------------------------------------------------------------


def renamed(kind: str, name: str, new: str, **spec: str) -> list[dict[str, Any]]:
    """The class with a copy of one of its templates under another name."""
    objects = load_all(manifest("class").replace(f"kind: {kind}, name: {name}}}", f"kind: {kind}, name: {new}}}"))
    template = next(each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    template["metadata"]["name"] = new
    template["spec"]["template"]["spec"].update(spec)
    return [next(each for each in objects if each["kind"] == "ClusterClass"), template]


def test_another_worker_template_of_a_class_replaces_the_workers_of_its_clusters_alone() -> None:
    plan = planned("class", renamed("NutanixMachineTemplate", "quay-worker", "quay-large", systemDiskSize="60Gi"))
    assert refusals(plan) == {}
    assert counted(plan) == {("leave", "KubeadmControlPlane"): 3, ("replace", "MachineDeployment"): 2}
    assert plan.unfinished == []


def test_another_control_plane_template_of_a_class_replaces_the_control_plane_alone() -> None:
    change = renamed("NutanixMachineTemplate", "quay-control-plane", "quay-tall", systemDiskSize="60Gi")
    assert counted(planned("class", change)) == {
        ("replace", "KubeadmControlPlane"): 3,
        ("leave", "MachineDeployment"): 2,
    }


def test_a_template_of_a_class_can_not_be_changed_in_place() -> None:
    plan = planned("class", changed("class", ("systemDiskSize: 40Gi", "systemDiskSize: 60Gi")))
    assert {*refusals(plan)} == {"NutanixMachineTemplate/quay-control-plane", "NutanixMachineTemplate/quay-worker"}
    assert all("create a template with another name" in text for text in refusals(plan).values())


def test_another_default_of_a_variable_replaces_nothing_because_clusters_keep_their_values() -> None:
    objects = changed("class", ("default: 4Gi}", "default: 8Gi}"))
    plan = planned("class", [each for each in objects if each["kind"] != "Cluster"])
    assert {each.kind for each in plan.applied if each.result == "configured"} == {"ClusterClass"}
    assert plan.machines == []


def test_a_class_that_is_in_use_can_not_lose_a_variable_or_be_deleted() -> None:
    plan = planned("class", changed("class", ("memorySize: {type: string", "memory: {type: string")))
    assert "Cluster default/pilot would become invalid" in refusals(plan)["ClusterClass/quay"]
    plan = planned("class", load_all(manifest("class"))[:1], delete=True)
    assert "it is used by Cluster default/pilot" in refusals(plan)["ClusterClass/quay"]


def test_a_cluster_of_a_class_is_upgraded_and_scaled_by_its_topology() -> None:
    plan = planned("class", changed("class", ("version: v1.29.0", "version: v1.30.0")))
    assert counted(plan) == {("replace", "KubeadmControlPlane"): 3, ("replace", "MachineDeployment"): 2}
    assert {(row.before, row.after) for row in plan.machines} == {("v1.29.0", "v1.30.0")}


# -- TenantCluster and ClusterDeployment -----------------------------------------------------------------------------


def test_a_tenant_cluster_gets_more_workers_and_leaves_those_that_run() -> None:
    plan = planned("tenant", changed("tenant", ("replicas: 1", "replicas: 3")))
    assert counted(plan) == {("create", "MachineDeployment"): 2, ("leave", "MachineDeployment"): 1}
    assert {row.cluster.rpartition("/")[2] for row in plan.machines} == {"quay"}


def test_deleting_a_tenant_cluster_deletes_its_machines() -> None:
    tenant = [each for each in load_all(manifest("tenant")) if each["kind"] == "TenantCluster"]
    assert counted(planned("tenant", tenant, delete=True)) == {("delete", "MachineDeployment"): 1}


def test_a_mistyped_field_of_a_tenant_cluster_is_refused() -> None:
    plan = planned("tenant", changed("tenant", ("workers: {", "workerz: {")))
    assert "workerz" in refusals(plan)["TenantCluster/quay"]


def test_a_cluster_deployment_is_scaled_and_deleted() -> None:
    plan = planned("deployment", changed("deployment", ("workersNumber: 1", "workersNumber: 2")))
    assert counted(plan) == {("create", "MachineDeployment"): 1, ("leave", "MachineDeployment"): 1}
    deployment = [each for each in load_all(manifest("deployment")) if each["kind"] == "ClusterDeployment"]
    assert counted(planned("deployment", deployment, delete=True)) == {("delete", "MachineDeployment"): 1}


def test_a_cluster_deployment_with_a_template_that_does_not_exist_is_refused() -> None:
    plan = planned("deployment", changed("deployment", ("nutanix-k0s-hcp", "nutanix-k0s-hpc")))
    assert "nutanix-k0s-hpc" in refusals(plan)["ClusterDeployment/pier"]


# -- k0s control planes on machines ----------------------------------------------------------------------------------


def test_a_new_k0s_control_plane_gets_all_its_machines_and_its_workers() -> None:
    texts = (("name: pier,", "name: mole,"), ("k0s-hcp", "k0s-standalone"), ("10.1.1.200", "10.1.1.202"))
    plan = planned("deployment", changed("deployment", *texts))
    assert counted(plan) == {("create", "K0sControlPlane"): 3, ("create", "MachineDeployment"): 1}
    assert plan.unfinished == []


def test_controllers_of_k0s_are_upgraded_in_place_and_workers_are_replaced() -> None:
    plan = planned("standalone", changed("standalone", ("v1.29.2+k0s.0", "v1.30.2+k0s.0")))
    assert refusals(plan) == {}
    assert counted(plan) == {("change", "K0sControlPlane"): 3, ("replace", "MachineDeployment"): 1}
    assert {row.after for row in plan.machines} == {"v1.30.2+k0s.0"}
    assert plan.unfinished == []


def test_controllers_of_k0s_are_replaced_one_at_a_time_where_their_template_changes() -> None:
    plan = planned(
        "standalone",
        changed("standalone", ("    workersNumber: 1", "    controlPlane: {memorySize: 12Gi}\n    workersNumber: 1")),
    )
    assert counted(plan) == {("replace", "K0sControlPlane"): 3, ("leave", "MachineDeployment"): 1}
    assert plan.unfinished == []


def test_a_k0s_control_plane_is_scaled_down_and_deleted() -> None:
    plan = planned(
        "standalone", changed("standalone", ("    workersNumber: 1", "    controlPlaneNumber: 1\n    workersNumber: 1"))
    )
    assert counted(plan)["delete", "K0sControlPlane"] == 2
    assert plan.unfinished == []
    deployment = [each for each in load_all(manifest("standalone")) if each["kind"] == "ClusterDeployment"]
    assert counted(planned("standalone", deployment, delete=True)) == {
        ("delete", "K0sControlPlane"): 3,
        ("delete", "MachineDeployment"): 1,
    }


def test_a_k0s_cluster_without_a_platform_is_created_upgraded_and_scaled() -> None:
    new = make_plan(running("tenant"), load_all(manifest("k0s")), "default", START + 7200, delete=False)
    assert refusals(new) == {}
    assert counted(new) == {("create", "K0sControlPlane"): 3, ("create", "MachineDeployment"): 2}
    assert new.unfinished == []
    plan = planned("k0s", changed("k0s", ("v1.29.2+k0s.0", "v1.30.2+k0s.0")))
    assert refusals(plan) == {}
    assert counted(plan) == {("change", "K0sControlPlane"): 3, ("replace", "MachineDeployment"): 2}
    assert {row.after for row in plan.machines} == {"v1.30.2+k0s.0"}
    plan = planned("k0s", changed("k0s", ("replicas: 3", "replicas: 1")))
    assert counted(plan)["delete", "K0sControlPlane"] == 2
    assert plan.unfinished == []


def test_a_mistyped_version_of_k0s_is_refused() -> None:
    assert "K0sControlPlane/jetty" in refusals(planned("k0s", changed("k0s", ("v1.29.2+k0s.0", "1.29"))))
