"""What a change will do, rehearsed by the controllers on a copy of the objects."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from homeport.app.rehearsal.copy import PlaneCopy, copy_plane
from homeport.app.rehearsal.plan import Plan, _settle, make_plan
from homeport.app.rehearsal.stage import stage, three_way
from homeport.machinery.yaml import load_all
from homeport.runtime.clock import LoopClock, run_virtual

START = 1_790_000_000.0
EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"


def objects(**changes: str) -> list[dict[str, Any]]:
    """The cluster of the tutorial, with texts replaced."""
    text = EXAMPLE.read_text()
    for old, new in changes.items():
        assert SPELT[old] in text
        text = text.replace(SPELT[old], new)
    return load_all(text)


SPELT = {"workers": "replicas: 2", "version": "version: v1.29.0", "memory": "memorySize: 4Gi", "name": "harbour"}


@cache
def running() -> PlaneCopy:
    """A plane whose cluster of five machines runs."""

    async def build() -> PlaneCopy:
        async with stage(LoopClock(START)) as on, on.running():
            for each in objects():
                assert await on.apply(each, "default") == ("created", None)
            await _settle(on, 5)
            return await copy_plane(on.client, ["default"])

    return run_virtual(build())


def planned(changed: list[dict[str, Any]], *, delete: bool = False, copy: PlaneCopy | None = None) -> Plan:
    return make_plan(copy or running(), changed, "default", START + 7200, delete=delete)


def counted(plan: Plan) -> Counter[tuple[str, str]]:
    return Counter((row.action, row.owner.split()[0]) for row in plan.machines)


def test_a_new_cluster_gets_machines_for_its_control_plane_and_its_workers() -> None:
    plan = planned(objects(), copy=PlaneCopy())
    assert counted(plan) == {("create", "KubeadmControlPlane"): 3, ("create", "MachineDeployment"): 2}
    assert {each.result for each in plan.applied} == {"created"}
    assert plan.unfinished == []


def test_nothing_happens_to_a_cluster_whose_manifest_is_the_same() -> None:
    plan = planned(objects())
    assert {each.result for each in plan.applied} == {"unchanged"}
    assert counted(plan) == {("leave", "KubeadmControlPlane"): 3, ("leave", "MachineDeployment"): 2}
    assert plan.under_way == []


def test_scaling_up_leaves_the_machines_that_run() -> None:
    assert counted(planned(objects(workers="replicas: 3"))) == {
        ("leave", "KubeadmControlPlane"): 3,
        ("create", "MachineDeployment"): 1,
        ("leave", "MachineDeployment"): 2,
    }


def test_an_upgrade_replaces_every_machine_and_names_the_reason() -> None:
    plan = planned(objects(version="version: v1.30.0"))
    assert counted(plan) == {("replace", "KubeadmControlPlane"): 3, ("replace", "MachineDeployment"): 2}
    assert {(row.before, row.after) for row in plan.machines} == {("v1.29.0", "v1.30.0")}
    assert all("v1.30.0" in row.reason for row in plan.machines)
    assert plan.unfinished == []


def test_a_template_that_machines_use_can_not_be_changed() -> None:
    plan = planned(objects(memory="memorySize: 8Gi"))
    assert plan.refused
    assert {each.kind for each in plan.applied if each.result == "refused"} == {"NutanixMachineTemplate"}
    assert all(row.action == "leave" for row in plan.machines)


def test_a_version_that_skips_a_minor_version_is_refused_as_the_plane_refuses_it() -> None:
    plan = planned(objects(version="version: v1.33.0"))
    [refused] = [each for each in plan.applied if each.result == "refused"]
    assert "upgrade one minor version at a time" in refused.message


def test_deleting_the_cluster_deletes_all_its_machines() -> None:
    [cluster] = [each for each in objects() if each["kind"] == "Cluster"]
    assert counted(planned([cluster], delete=True)) == {
        ("delete", "KubeadmControlPlane"): 3,
        ("delete", "MachineDeployment"): 2,
    }


def test_a_mistyped_field_is_refused_as_kubectl_refuses_it() -> None:
    changed = objects(workers="replicas: 2\n  replicaz: 5")
    [refused] = [each for each in planned(changed).applied if each.result == "refused"]
    assert refused.kind == "MachineDeployment"
    assert "replicaz" in refused.message


def test_labels_and_the_data_of_secrets_are_changes_too() -> None:
    changed = objects()
    changed[0]["stringData"] = {"credentials": "[]"}
    next(each for each in changed if each["kind"] == "Cluster")["metadata"]["labels"] = {"a": "b"}
    plan = planned(changed)
    assert {each.kind for each in plan.applied if each.result == "configured"} == {"Secret", "Cluster"}
    assert {row.action for row in plan.machines} == {"leave"}


def test_what_the_last_apply_had_and_this_one_has_not_is_removed() -> None:
    assert three_way({"spec": {"a": 1}}, {"spec": {"a": 2, "b": {"c": 1}}}) == {"spec": {"a": 1, "b": None}}


def test_a_new_cluster_that_gets_no_network_plugin_is_noted() -> None:
    [note] = planned(objects(), copy=PlaneCopy()).notes
    assert note.startswith("Cluster harbour: no ClusterAddon, ClusterResourceSet or HelmChartProxy installs a network")
    spec = {"clusterName": "harbour", "addon": "cilium"}
    meta = {"name": "cilium"}
    addon = {"apiVersion": "addons.homeport.dev/v1alpha1", "kind": "ClusterAddon", "metadata": meta, "spec": spec}
    assert planned([*objects(), addon], copy=PlaneCopy()).notes == []
    assert planned(objects()).notes == []  # it runs already
