"""What a topology asks for, what it is named, what it says, and what is left of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import (
    Cluster,
    ClusterClass,
    ContractRef,
    Machine,
    MachineDeployment,
    MachineSet,
)
from homeport.api.cluster.v1beta2.template import MachineDeploymentClass
from homeport.api.cluster.v1beta2.topology import MachineDeploymentTopology
from homeport.api.meta import Resource, Unstructured
from homeport.capi.contract import Contract
from homeport.core.topology import garbage, status
from homeport.core.topology.convergence import cluster_patch
from homeport.core.topology.current import Current, CurrentDeployment
from homeport.core.topology.desired import name, worker
from homeport.core.topology.desired.blueprint import Blueprint, DeploymentBlueprint, Template, TopologyError
from homeport.core.topology.desired.check import rules
from homeport.core.topology.desired.cluster import Desired, concurrency, desire, find_values
from homeport.core.topology.upgrade import Plan

GROUP = "p.example.com"
OWNED = "topology.cluster.x-k8s.io/owned"
STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
Json = dict[str, Any]


def template(kind: str, **spec: Any) -> Template:
    resource = Resource(GROUP, "v1", f"{kind}Template", f"{kind.lower()}templates")
    meta = {"name": "t", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "1"}}
    body = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}Template", "metadata": meta}
    return Template(resource, Unstructured({**body, "spec": {"template": {"spec": spec}}}))


WORKER: Json = {"class": "w", "bootstrap": {}, "infrastructure": {}}


def blueprint(contract: Contract = "v1beta2", worker_class: Json | None = None, **spec: Any) -> Blueprint:
    given: Json = {
        "variables": [{"name": "size", "schema": {"openAPIV3Schema": {"type": "integer", "default": 1}}}],
        "patches": [patch("MachineTemplate", "/spec/template/spec/size", "{{ .size }}")],
        "controlPlane": {},
        "infrastructure": {},
        **spec,
    }
    made = msgspec.convert({"metadata": {"name": "k", "namespace": "n"}, "spec": given}, ClusterClass)
    classes = msgspec.convert({**WORKER, **(worker_class or {})}, MachineDeploymentClass)
    return Blueprint(
        made,
        template("Infra", network="x"),
        template("Plane"),
        contract,
        template("Machine", size=0),
        {"w": DeploymentBlueprint(classes, template("Config"), template("Machine", size=0))},
    )


def patch(kind: str, path: str, text: str) -> Json:
    where = {"controlPlane": True, "machineDeploymentClass": {"names": ["*"]}, "infrastructureCluster": True}
    selector = {"apiVersion": f"{GROUP}/v1", "kind": kind, "matchResources": where}
    step = {"op": "add", "path": path, "valueFrom": {"template": text}}
    return {"name": "p", "definitions": [{"selector": selector, "jsonPatches": [step]}]}


def cluster(**topology: Any) -> Cluster:
    held = {
        "classRef": {"name": "k"},
        "version": "v1.30.0",
        "controlPlane": {"replicas": 3},
        "workers": {"machineDeployments": [{"class": "w", "name": "a", "replicas": 2}]},
        **topology,
    }
    meta = {"name": "c", "namespace": "n", "uid": "u-1", "resourceVersion": "7"}
    return msgspec.convert({"metadata": meta, "spec": {"topology": held}}, Cluster)


PLAN = Plan("v1.30.0", {"a": "v1.30.0"})


def wanted(of: Cluster | None = None, by: Blueprint | None = None, plan: Plan = PLAN, **current: Any) -> Desired:
    found, given = of or cluster(), by or blueprint()
    return desire(found, given, Current(**current), plan, find_values(found, given))


# -- names -----------------------------------------------------------------------------------------------------------


def test_names_follow_from_the_cluster_and_differ_between_clusters_of_the_same_name() -> None:
    one, two = cluster(), cluster()
    two.metadata.uid = "u-2"
    for named in (name.infrastructure, name.control_plane, name.template, lambda c: name.deployment(c, "a")):
        assert named(one) == named(one)
        assert named(one) != named(two)
        assert named(one).startswith("c-")
    assert name.infrastructure(one) != name.control_plane(one)


def test_names_of_templates_follow_from_what_is_in_them() -> None:
    one = cluster()
    four, eight = name.template(one, "a", {"cores": 4}), name.template(one, "a", {"cores": 8})
    assert len({four, eight, name.template(one, "a"), name.template(one, "b", {"cores": 4})}) == 4
    assert four == name.template(one, "a", {"cores": 4})


def test_long_names_are_shortened() -> None:
    long = cluster()
    long.metadata.name = "c" * 60
    made = [name.control_plane(long), name.deployment(long, "d" * 60), name.template(long, "d" * 60, {"a": 1})]
    assert all(len(each) <= 63 for each in made)
    assert name.deployment(long, "d" * 60) != name.deployment(long, "d" * 59)


# -- desired ---------------------------------------------------------------------------------------------------------


def test_objects_come_from_patched_templates_with_their_owner_and_labels() -> None:
    made = wanted()
    assert made.machines is not None
    assert made.infrastructure["spec"] == {"network": "x"}
    assert made.infrastructure["kind"] == "Infra"
    assert made.machines["spec"]["template"]["spec"] == {"size": 1}
    md = made.deployments["a"]
    assert md.infrastructure["spec"]["template"]["spec"] == {"size": 1}
    assert md.object["spec"]["template"]["spec"]["infrastructureRef"]["name"] == md.infrastructure["metadata"]["name"]
    annotations = made.machines["metadata"]["annotations"]
    assert annotations["kept"] == "1"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in annotations
    for each in (made.infrastructure, made.control_plane):
        assert each["metadata"]["ownerReferences"][0]["controller"] is True
    for each in (made.machines, md.object, md.bootstrap):
        assert "controller" not in each["metadata"]["ownerReferences"][0]
        assert each["metadata"]["labels"][OWNED] == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ .builtin.cluster.name }}", "c"),
        ("{{ .builtin.cluster.topology.version }}", "v1.31.0"),
        ("{{ if .builtin.controlPlane }}{{ .builtin.controlPlane.version }}{{ else }}w{{ end }}", "v1.30.0"),
    ],
)
def test_patches_know_what_they_are_for(text: str, value: str) -> None:
    by = blueprint(patches=[patch("MachineTemplate", "/spec/template/spec/size", text)])
    made = wanted(cluster(version="v1.31.0"), by)
    assert made.machines is not None
    assert made.machines["spec"]["template"]["spec"]["size"] == value


def test_a_patch_finds_the_version_that_a_part_has_now() -> None:
    text = "{{ .builtin.machineDeployment.version }} {{ .builtin.machineDeployment.topologyName }}"
    by = blueprint(patches=[patch("ConfigTemplate", "/spec/template/spec/x", text)])
    made = wanted(by=by, plan=Plan("v1.31.0", {"a": "v1.30.5"}))
    assert made.deployments["a"].bootstrap["spec"]["template"]["spec"]["x"] == "v1.30.5 a"


def test_what_is_there_keeps_its_name() -> None:
    found = cluster()
    found.spec.control_plane_ref = ContractRef(api_group=GROUP, kind="Plane", name="mine")
    found.spec.infrastructure_ref = ContractRef(api_group=GROUP, kind="Infra", name="ours")
    ref = {"apiGroup": GROUP, "kind": "MachineTemplate", "name": "old"}
    plane = Unstructured(
        {"metadata": {"name": "mine"}, "spec": {"machineTemplate": {"spec": {"infrastructureRef": ref}}}}
    )
    there = msgspec.convert(
        {
            "metadata": {"name": "d"},
            "spec": {
                "template": {"spec": {"infrastructureRef": ref, "bootstrap": {"configRef": {**ref, "kind": "X"}}}}
            },
        },
        MachineDeployment,
    )
    made = wanted(found, control_plane=plane, deployments={"a": CurrentDeployment(there)})
    assert made.machines is not None
    names = (made.control_plane, made.infrastructure, made.machines)
    assert [each["metadata"]["name"] for each in names] == ["mine", "ours", "old"]
    md = made.deployments["a"]
    assert (md.object["metadata"]["name"], md.infrastructure["metadata"]["name"]) == ("d", "old")
    assert md.bootstrap["metadata"]["name"] == name.template(found, "a"), "of another kind: another name"


def test_zero_is_a_value_and_nothing_is_none() -> None:
    made = wanted(cluster(workers={"machineDeployments": [{"class": "w", "name": "a", "replicas": 0}]}))
    assert made.deployments["a"].object["spec"]["replicas"] == 0
    made = wanted(cluster(workers={"machineDeployments": [{"class": "w", "name": "a"}]}, controlPlane={}))
    assert "replicas" not in made.deployments["a"].object["spec"]
    assert "replicas" not in made.control_plane["spec"]


@pytest.mark.parametrize(
    ("topology", "given", "text"),
    [
        ({"variables": [{"name": "size", "value": "big"}]}, {}, r"spec\.topology\.variables\[size\]"),
        ({"variables": [{"name": "no", "value": 1}]}, {}, "does not define this variable"),
        ({}, {"patches": [patch("MachineTemplate", "/spec/a/b/c", "1")]}, "ClusterClass k: patch 'p'"),
        ({}, {"controlPlane": {"naming": {"template": "{{ .nobody }}"}}}, "a naming template"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(topology: Json, given: Json, text: str) -> None:
    with pytest.raises(TopologyError, match=text):
        wanted(cluster(**topology), blueprint(**given))


@pytest.mark.parametrize(("text", "number"), [("", 1), ("3", 3), ("0", 1), ("many", 1)])
def test_concurrency_is_at_least_one(text: str, number: int) -> None:
    found = cluster()
    found.metadata.annotations = {"topology.cluster.x-k8s.io/upgrade-concurrency": text} if text else {}
    assert concurrency(found) == number


@pytest.mark.parametrize(
    ("marks", "deferred"),
    [
        ({}, []),
        ({"b": "defer-upgrade"}, ["b"]),
        ({"b": "hold-upgrade-sequence"}, ["b", "c"]),
        ({"a": "defer-upgrade", "c": "hold-upgrade-sequence"}, ["a", "c"]),
    ],
)
def test_holding_the_sequence_holds_all_that_come_later(marks: dict[str, str], deferred: list[str]) -> None:
    listed = [
        msgspec.convert(
            {"name": each, "class": "w", "metadata": {"annotations": {f"topology.cluster.x-k8s.io/{marks[each]}": ""}}}
            if each in marks
            else {"name": each, "class": "w"},
            MachineDeploymentTopology,
        )
        for each in "abc"
    ]
    assert [each for each in "abc" if worker.is_deferred(listed, each)] == deferred


CHECK: Json = {"checks": {"nodeStartupTimeoutSeconds": 60}}


@pytest.mark.parametrize(
    ("said", "given", "made"),
    [
        ({}, {}, None),
        ({}, CHECK, CHECK),
        ({"enabled": True}, CHECK, CHECK),
        ({"enabled": False}, CHECK, None),
        ({"checks": {"nodeStartupTimeoutSeconds": 90}}, CHECK, {"checks": {"nodeStartupTimeoutSeconds": 90}}),
        ({}, {"remediation": {"maxInFlight": 1}}, None),
        ({"enabled": True}, {}, None),
    ],
)
def test_a_health_check_is_what_the_cluster_says_or_else_the_class(said: Json, given: Json, made: Json | None) -> None:
    found = msgspec.convert({"name": "a", "class": "w", "healthCheck": said}, MachineDeploymentTopology)
    classes = blueprint(worker_class={"healthCheck": given}).deployments["w"].given
    assert rules(found.health_check, classes.health_check) == made


@pytest.mark.parametrize(
    ("versions", "upgrading"),
    [
        ([], False),
        ([("v1.31.0", "")], False),
        ([("v1.31.0", "v1.31.0")], False),
        ([("v1.31.0", "v1.31.0"), ("v1.30.0", "v1.30.0")], True),
        ([("v1.31.0", "v1.30.0")], True),
    ],
)
def test_a_deployment_is_being_upgraded_while_a_machine_or_kubelet_has_another_version(
    versions: list[tuple[str, str]], upgrading: bool
) -> None:
    md = msgspec.convert({"spec": {"template": {"spec": {"version": "v1.31.0"}}}}, MachineDeployment)
    machines = [
        msgspec.convert({"spec": {"version": spec}, "status": {"nodeInfo": {"kubeletVersion": kubelet}}}, Machine)
        for spec, kubelet in versions
    ]
    assert CurrentDeployment(md, machines=machines).upgrading is upgrading


# -- the Cluster itself ------------------------------------------------------------------------------------------------


def test_the_cluster_is_patched_once_and_then_left_alone() -> None:
    found, made = cluster(), wanted()
    first = cluster_patch(found, "", made)
    assert first["spec"]["controlPlaneRef"] == {
        "apiGroup": GROUP,
        "kind": "Plane",
        "name": made.control_plane["metadata"]["name"],
    }
    assert first["metadata"]["resourceVersion"] == "7"
    found.metadata.labels = dict(first["metadata"]["labels"])
    found.spec.control_plane_ref = found.spec.infrastructure_ref = ContractRef(api_group=GROUP, kind="X", name="x")
    assert cluster_patch(found, "", made) == {}
    assert cluster_patch(found, "v1.31.0", made)["metadata"]["annotations"] == {STEP: "v1.31.0"}
    found.metadata.annotations = {STEP: "v1.31.0"}
    assert cluster_patch(found, "", made)["metadata"]["annotations"] == {STEP: None}


# -- what is said ------------------------------------------------------------------------------------------------------

MOVES = Plan(
    "v1.31.0", {"a": "v1.30.0"}, steps=["v1.31.0", "v1.32.0"], worker_steps=["v1.32.0"], plane_moves=True, waiting=["a"]
)
LATE = Plan("v1.31.0", {"a": "v1.30.0", "b": "v1.30.0"}, worker_steps=["v1.31.0"], waiting=["a", "b"])


@pytest.mark.parametrize(
    ("plan", "reason", "parts"),
    [
        (
            MOVES,
            "ClusterUpgrading",
            ["Plane p is being upgraded to v1.31.0 (then v1.32.0)", "d-a is waiting for the control"],
        ),
        (
            replace(MOVES, plane_moves=False, plane_waits=True, blocked=["hook/x"]),
            "ClusterUpgrading",
            ["remove the annotation hook/x", "Plane p stays at v1.31.0"],
        ),
        (
            replace(LATE, moving=["a"]),
            "ClusterUpgrading",
            ["d-a is being upgraded to", "d-b is waiting for those before"],
        ),
        (replace(LATE, deferred=["a", "b"]), "MachineDeploymentsUpgradeDeferred", ["d-a, d-b are deferred"]),
        (replace(LATE, deferred=["a"]), "ClusterUpgrading", ["d-a is deferred", "d-b is waiting"]),
        (
            Plan("v1.31.0", {}, withheld=["n"], plane_moves=True),
            "ClusterUpgrading",
            ["machine deployment n is created when"],
        ),
    ],
)
def test_what_is_waited_for_is_named(plan: Plan, reason: str, parts: list[str]) -> None:
    wait = status.waiting(cluster(version="v1.32.0"), plan, "Plane p", {"a": "d-a", "b": "d-b"})
    assert wait is not None
    assert wait.reason == reason
    for part in parts:
        assert part in wait.message


def test_there_is_nothing_to_say_when_all_is_done() -> None:
    assert status.waiting(cluster(), PLAN, "Plane p", {}) is None


# -- what is left ------------------------------------------------------------------------------------------------------


def copy(kind: str, called: str, owner: str = "u-1", **meta: Any) -> tuple[Resource, Unstructured]:
    ref = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": owner}
    body = {"metadata": {"name": called, "uid": f"{kind}-{called}", "ownerReferences": [ref], **meta}}
    return Resource(GROUP, "v1", kind, kind.lower()), Unstructured(body)


def test_templates_that_nobody_refers_to_are_left() -> None:
    def sets(called: str, **meta: Any) -> MachineSet:
        ref = {"apiGroup": GROUP, "kind": "ATemplate", "name": called}
        spec = {
            "template": {"spec": {"infrastructureRef": ref, "bootstrap": {"configRef": {**ref, "kind": "BTemplate"}}}}
        }
        return msgspec.convert({"metadata": {"name": "s", **meta}, "spec": spec}, MachineSet)

    used = garbage.used_by([sets("one"), sets("two", deletionTimestamp="2026-01-01T00:00:00Z")])
    used |= garbage.used_as({"apiVersion": f"{GROUP}/v9", "kind": "ATemplate", "metadata": {"name": "three"}}, None)
    found = garbage.unused(
        cluster(),
        [
            *(copy("ATemplate", each) for each in ("one", "two", "three")),
            *(copy("BTemplate", each) for each in ("one", "three")),
            copy("ATemplate", "alien", owner="u-2"),
            copy("ATemplate", "going", deletionTimestamp="2026-01-01T00:00:00Z"),
            copy("Plane", "no-template"),
        ],
        used,
    )
    assert sorted((resource.kind, obj.name) for resource, obj in found) == [
        ("ATemplate", "two"),
        ("BTemplate", "three"),
    ]
