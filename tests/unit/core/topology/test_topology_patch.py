"""Patches of a class over templates, and what is wrong with a class's patches."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.api.cluster.v1beta2.patch import ClusterClassPatch
from homeport.core.topology.patch.patch import PatchError, Subject, check_patches, patched, used_variables

INFRA = "infrastructure.cluster.x-k8s.io/v1beta1"
ENDPOINT = {"controlPlaneEndpoint": {"IP": "10.0.0.5", "port": 6443}}


def patch(*operations: dict[str, Any], name: str = "p", match: dict[str, Any] | None = None, **parts: Any) -> Any:
    selector = {
        "apiVersion": parts.pop("apiVersion", INFRA),
        "kind": parts.pop("kind", "NutanixClusterTemplate"),
        "matchResources": match or {"infrastructureCluster": True},
    }
    raw = {"name": name, "definitions": [{"selector": selector, "jsonPatches": list(operations)}], **parts}
    return msgspec.convert(raw, ClusterClassPatch)


def add(path: str, **value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, **value}


def template(text: str) -> dict[str, Any]:
    return {"valueFrom": {"template": text}}


def variable(text: str) -> dict[str, Any]:
    return {"valueFrom": {"variable": text}}


def subject(spec: dict[str, Any] | None = None, **parts: Any) -> Subject:
    obj = {
        "apiVersion": INFRA,
        "kind": parts.pop("kind", "NutanixClusterTemplate"),
        "metadata": {"name": "t"},
        "spec": {"template": {"spec": spec if spec is not None else {}}},
    }
    return Subject(obj, parts.pop("role", "infrastructureCluster"), parts.pop("class_name", ""), parts)


def over(subject: Subject, *patches: Any) -> Any:
    return patched(patches, [subject])[0]["spec"]["template"].get("spec")


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"value": {"a": 1}}, {"a": 1}),
        ({"value": False}, False),
        (variable("controlPlaneEndpoint"), {"IP": "10.0.0.5", "port": 6443}),
        (variable("controlPlaneEndpoint.port"), 6443),
        (variable("keys[1].name"), "b"),
        (
            template("host: '{{ .controlPlaneEndpoint.IP }}'\nport: {{ .controlPlaneEndpoint.port }}\n"),
            {"host": "10.0.0.5", "port": 6443},
        ),
        (template("{{ .large }}"), 4000000),
        (template("{{ .missing }}"), "<no value>"),
        (template("{{ if .missing }}x{{ end }}"), None),
        (template("{{ .builtin.cluster.name }}-x"), "c1-x"),
        (template("- {{ (index .keys 0).name }}\n"), ["a"]),
    ],
)
def test_a_value_is_given_or_taken_from_a_variable_or_made_by_a_template(value: dict[str, Any], result: object) -> None:
    given = subject(**ENDPOINT, keys=[{"name": "a"}, {"name": "b"}], large=4000000, builtin={"cluster": {"name": "c1"}})
    assert over(given, patch(add("/spec/template/spec/x", **value))) == {"x": result}


@pytest.mark.parametrize(
    ("condition", "on"),
    [
        ("", True),
        ("true", True),
        ("{{ if .project }}true{{ end }}", True),
        ("{{ if .nothing }}true{{ end }}", False),
        ("{{ not .project }}", False),
        ("'true'", False),
        ("yes it is", False),
    ],
)
def test_a_patch_is_used_when_its_condition_says_true(condition: str, on: bool) -> None:
    enabled: dict[str, Any] = {"enabledIf": condition} if condition else {}
    one = patch(add("/spec/template/spec/x", value=1), **enabled)
    assert over(subject(project="a"), one) == ({"x": 1} if on else {})


@pytest.mark.parametrize(
    ("match", "role", "class_name", "meant"),
    [
        ({"infrastructureCluster": True}, "infrastructureCluster", "", True),
        ({"infrastructureCluster": False, "controlPlane": True}, "infrastructureCluster", "", False),
        ({"controlPlane": True}, "controlPlane", "", True),
        ({"controlPlane": True}, "machineDeployment", "w", False),
        ({"machineDeploymentClass": {"names": ["w"]}}, "machineDeployment", "w", True),
        ({"machineDeploymentClass": {"names": ["v", "*"]}}, "machineDeployment", "w", True),
        ({"machineDeploymentClass": {"names": ["*-gpu"]}}, "machineDeployment", "w-gpu", True),
        ({"machineDeploymentClass": {"names": ["w-*"]}}, "machineDeployment", "w-gpu", True),
        ({"machineDeploymentClass": {"names": ["w-*"]}}, "machineDeployment", "x-gpu", False),
        ({"machineDeploymentClass": {"names": ["w"]}}, "machinePool", "w", False),
        ({"machinePoolClass": {"names": ["w"]}}, "machinePool", "w", True),
    ],
)
def test_a_selector_means_the_templates_of_a_role_or_class(
    match: dict[str, Any], role: str, class_name: str, meant: bool
) -> None:
    given = subject(role=role, class_name=class_name)
    assert bool(over(given, patch(add("/spec/template/spec/x", value=1), match=match))) is meant


def test_another_kind_or_version_is_left_alone() -> None:
    step = add("/spec/template/spec/x", value=1)
    assert over(subject(), patch(step, kind="Other"), patch(step, apiVersion=INFRA.replace("v1beta1", "v1"))) == {}


def test_what_comes_out_shares_nothing_with_what_went_in() -> None:
    given = subject({"own": {}}, shared={"list": []})
    one = patch(add("/spec/template/spec/x", **variable("shared")), add("/spec/template/spec/y", value={"z": []}))
    first, second = over(given, one), over(given, one)
    first["own"]["a"] = first["x"]["list"] = first["y"]["z"] = 1
    assert second == over(given, one) == {"own": {}, "x": {"list": []}, "y": {"z": []}}


def test_patches_go_one_after_the_other_and_leave_the_input_alone() -> None:
    given = subject({"list": ["a"], "old": 1})
    before = copy.deepcopy(given.object)
    result = over(
        given,
        patch(add("/spec/template/spec/list/-", value="z"), add("/spec/template/spec/list/0", value="0")),
        patch({"op": "remove", "path": "/spec/template/spec/old"}),
        patch({"op": "replace", "path": "/spec/template/spec/list", "value": ["n"]}, enabledIf="{{ false }}"),
    )
    assert result == {"list": ["0", "a", "z"]}
    assert given.object == before


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (add("/spec/template/spec/a/b", value=1), "/spec/template/spec/a does not exist"),
        (add("/metadata/labels", value={}), "under /spec"),
        ({"op": "replace", "path": "/spec/template/spec/a", "value": 1}, "use the operation add"),
        ({"op": "remove", "path": "/spec/template/spec/a"}, "nothing to remove"),
        (add("/spec/template/spec/x", **variable("nothing")), "variable 'nothing' is not set"),
        (add("/spec/template/spec/x", **variable("e.port")), "e has no field 'port'"),
        (add("/spec/template/spec/x", **variable("l[3]")), "l has 1 items"),
        (add("/spec/template/spec/x", **variable("e[0]")), "e is not a list"),
        (add("/spec/template/spec/x", **variable("l[x]")), "can't be read"),
        (add("/spec/template/spec/x", **template("{{ .l.x }}")), "can't be rendered: line 1"),
        (add("/spec/template/spec/x", **template("a: b: c")), "not valid YAML"),
        (add("/spec/template/spec/x"), "either value or valueFrom"),
    ],
)
def test_what_goes_wrong_names_patch_definition_operation_and_object(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as caught:
        over(subject(e={}, l=[1]), patch(operation, name="mine"))
    assert message in str(caught.value)
    assert str(caught.value).startswith(
        f"patch 'mine', definition 0, operation 0 ({operation['op']} {operation['path']})"
    )
    assert "NutanixClusterTemplate 't'" in str(caught.value)


def test_a_patch_of_an_extension_is_refused() -> None:
    external = msgspec.convert({"name": "e", "external": {"generatePatchesExtension": "x.y"}}, ClusterClassPatch)
    with pytest.raises(PatchError, match="runtime extension"):
        patched([external], [subject()])


def test_the_variables_that_values_come_from_are_known() -> None:
    patches = [
        patch(add("/spec/a", **variable("one.two")), add("/spec/b", **variable("many[0].x"))),
        patch(add("/spec/c", **variable("builtin.cluster.name")), add("/spec/d", **template("{{ .other }}"))),
    ]
    assert used_variables(patches) == {"one", "many"}


def cluster_class(*patches: Any) -> ClusterClass:
    def ref(kind: str) -> dict[str, Any]:
        return {"templateRef": {"apiVersion": INFRA, "kind": kind, "name": "x"}}

    worker = {
        "class": "w-gpu",
        "bootstrap": ref("KubeadmConfigTemplate"),
        "infrastructure": ref("NutanixMachineTemplate"),
    }
    raw = {
        "infrastructure": ref("NutanixClusterTemplate"),
        "controlPlane": {**ref("KubeadmControlPlaneTemplate"), "machineInfrastructure": ref("NutanixMachineTemplate")},
        "workers": {"machineDeployments": [worker], "machinePools": []},
        "variables": [{"name": "known", "required": False, "schema": {"openAPIV3Schema": {"type": "string"}}}],
    }
    made = msgspec.convert({"metadata": {"name": "cc"}, "spec": raw}, ClusterClass)
    made.spec.patches = list(patches)
    return made


@pytest.mark.parametrize(
    ("operation", "path", "message"),
    [
        ({"op": "move", "path": "/spec/a"}, ".op", "'move' is not supported"),
        (add("/metadata/x", value=1), ".path", "must begin with /spec"),
        (add("/specific", value=1), ".path", "must begin with /spec"),
        (add("/spec/l/1", value=1), ".path", "not at 1"),
        ({"op": "replace", "path": "/spec/l/0", "value": 1}, ".path", "replace can't change an item of the list"),
        ({"op": "remove", "path": "/spec/l/0/x"}, ".path", "remove can't change an item of the list"),
        (add("/spec/a"), "", "needs value or valueFrom"),
        (add("/spec/a", value=1, **variable("known")), "", "mutually exclusive"),
        (add("/spec/a", valueFrom={}), ".valueFrom", "either variable or template"),
        (add("/spec/a", valueFrom={"variable": "known", "template": "x"}), ".valueFrom", "either variable or template"),
        (add("/spec/a", **template("{{ if }}")), ".valueFrom.template", "can't be parsed: line 1"),
        (add("/spec/a", **variable("unknown.x")), ".valueFrom.variable", "no variable 'unknown'"),
        (add("/spec/a", **variable("known[a]")), ".valueFrom.variable", "can't be read"),
        (add("/spec/a", **variable("builtin.cluster.nam")), ".valueFrom.variable", "not a builtin variable"),
    ],
)
def test_a_bad_operation_is_found_before_a_cluster_uses_it(operation: dict[str, Any], path: str, message: str) -> None:
    [(found, why)] = check_patches(cluster_class(patch(operation)))
    assert found == f"spec.patches[0].definitions[0].jsonPatches[0]{path}"
    assert message in why


@pytest.mark.parametrize(
    ("parts", "path", "message"),
    [
        ({"kind": "Other"}, ".infrastructureCluster", "Other of infrastructure.cluster.x-k8s.io/v1beta1 is not what"),
        ({"match": {"controlPlane": True}}, ".controlPlane", "neither the control plane nor its machines"),
        ({"match": {"controlPlane": False}}, "", "selects nothing"),
        (
            {"match": {"machineDeploymentClass": {"names": ["w-gpu"]}}},
            ".machineDeploymentClass.names[0]",
            "no class in spec.workers.machineDeployments",
        ),
        (
            {"kind": "NutanixMachineTemplate", "match": {"machineDeploymentClass": {"names": ["x*"]}}},
            ".machineDeploymentClass.names[0]",
            "'x*'",
        ),
        (
            {"match": {"machineDeploymentClass": {"names": ["*w*"]}}},
            ".machineDeploymentClass.names[0]",
            "more than one",
        ),
        (
            {"match": {"machineDeploymentClass": {"names": ["w*w"]}}},
            ".machineDeploymentClass.names[0]",
            "in the middle",
        ),
        ({"match": {"machinePoolClass": {"names": ["w"]}}}, ".machinePoolClass.names[0]", "spec.workers.machinePools"),
    ],
)
def test_a_selector_that_matches_nothing_is_found(parts: dict[str, Any], path: str, message: str) -> None:
    [(found, why)] = check_patches(cluster_class(patch(add("/spec/a", value=1), **parts)))
    assert found == f"spec.patches[0].definitions[0].selector.matchResources{path}"
    assert message in why


def test_a_class_may_have_these_patches() -> None:
    step = add("/spec/a", **variable("builtin.cluster.network.pods[0]"))
    machines = {"controlPlane": True, "machineDeploymentClass": {"names": ["w-*"]}}
    good = cluster_class(
        patch(step, add("/spec/l/-", **variable("known")), add("/spec/l/0", **template("{{ .known | quote }}"))),
        patch(step, name="q", kind="NutanixMachineTemplate", match=machines, enabledIf="{{ .known }}"),
    )
    assert check_patches(good) == []


def test_names_conditions_and_extensions_are_checked() -> None:
    external = msgspec.convert({"name": "e", "external": {"generatePatchesExtension": "x.y"}}, ClusterClassPatch)
    empty = msgspec.convert({"name": "inline"}, ClusterClassPatch)
    found = check_patches(cluster_class(external, empty, patch(add("/spec/a", value=1), name="e", enabledIf="{{")))
    assert [path for path, _ in found] == [
        "spec.patches[0].external",
        "spec.patches[1].name",
        "spec.patches[1]",
        "spec.patches[2].name",
        "spec.patches[2].enabledIf",
    ]


names = st.sampled_from(["a", "b", "list", "0", "1", "-", "", "x~1y", "~"])
leaves = st.one_of(st.none(), st.booleans(), st.integers(-9, 10**22), st.floats(allow_nan=False), st.text(max_size=4))
values = st.recursive(
    leaves, lambda each: st.one_of(st.lists(each, max_size=3), st.dictionaries(names, each, max_size=3)), max_leaves=6
)
sources = st.one_of(
    st.builds(lambda value: {"value": value}, values),
    st.builds(variable, st.sampled_from(["a", "a.b", "list[0]", "list[0].a", "a[", "[0]", "", "builtin.cluster.name"])),
    st.builds(
        template, st.sampled_from(["{{ .a }}", "{{ .list | toJson }}", "- {{ .a.b }}", "{", "{{ .a.b.list }}", "*a"])
    ),
)


@settings(max_examples=200, deadline=None)
@given(
    values,
    st.dictionaries(names, values, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(["add", "replace", "remove"]), st.lists(names, max_size=3), sources), max_size=3
    ),
)
def test_a_patch_is_laid_over_or_says_why_not(
    spec: Any, known: dict[str, Any], steps: list[tuple[str, list[str], dict[str, Any]]]
) -> None:
    operations = [
        {"op": op, "path": "/spec/template/spec" + "".join(f"/{each}" for each in path), **made}
        for op, path, made in steps
    ]
    with contextlib.suppress(PatchError):
        over(subject(spec, **known), patch(*operations))
