"""What a ClusterClass may say: tables of what is refused, and where."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from capikit import blueprint
from homeport.core.clusterclass.admission import validate
from homeport.core.clusterclass.definition import schema_causes
from homeport.core.clusterclass.usage import deletion_causes, usage_causes, uses
from homeport.core.topology.compatibility import incompatible

Json = dict[str, Any]
Change = Callable[[Json], None]


def made(change: Change | None = None) -> Json:
    obj = blueprint.cluster_class()
    if change is not None:
        change(obj["spec"])
    return obj


def worker(spec: Json) -> Json:
    found: Json = spec["workers"]["machineDeployments"][0]
    return found


def test_a_class_as_it_should_be_is_accepted() -> None:
    assert validate(made(), None) == []


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        (lambda s: s["infrastructure"]["templateRef"].update(kind="GenericCluster"), "spec.infrastructure.templateRef.kind", "Template"),
        (lambda s: s["controlPlane"]["templateRef"].update(apiVersion="v1") or s.update(patches=[]), "spec.controlPlane.templateRef.apiVersion", "group"),
        (lambda s: worker(s)["bootstrap"]["templateRef"].update(name=""), "spec.workers.machineDeployments[0].bootstrap.templateRef.name", "set the name of the template"),
        (lambda s: s["workers"]["machineDeployments"].append(worker(s)), "spec.workers.machineDeployments[1].class", "Duplicate"),
        (lambda s: s["variables"].append(s["variables"][0]), "spec.variables[3].name", "Duplicate"),
        (lambda s: s["variables"][2].update(name="builtin"), "spec.variables[2].name", "choose another"),
        (lambda s: s["variables"][2].update(name="a.b"), "spec.variables[2].name", "dot"),
        (lambda s: s.update(kubernetesVersions=["v1.30.0", "v1.29.0"]), "spec.kubernetesVersions[1]", "must be newer"),
        (lambda s: s.update(kubernetesVersions=["v1.30.0", "v1.30.0"]), "spec.kubernetesVersions[1]", "newer"),
        (lambda s: s.update(kubernetesVersions=["v1.30.0", "v1.32.0"]), "spec.kubernetesVersions[1]", "skips minor versions"),
        (lambda s: s.update(kubernetesVersions=["1.x"]), "spec.kubernetesVersions[0]", "semantic version"),
        (lambda s: s["controlPlane"].update(naming={"template": "{{ .cluster.nam }}"}), "spec.controlPlane.naming.template", "supported fields"),
        (lambda s: s["infrastructure"].update(naming={"template": "A-{{ .cluster.name }}"}), "spec.infrastructure.naming.template", "not a valid name"),
        (lambda s: worker(s).update(naming={"template": "{{ .machinePool.topologyName }}"}), "spec.workers.machineDeployments[0].naming.template", "machineDeployment.topologyName"),
        (lambda s: worker(s).update(metadata={"labels": {"a b": "c"}}), "spec.workers.machineDeployments[0].metadata.labels", "a b"),
        (lambda s: worker(s).update(taints=[{"key": "node-role.kubernetes.io/control-plane"}]), "spec.workers.machineDeployments[0].taints[0].key", "workers"),
        (lambda s: worker(s).update(rollout={"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}), "spec.workers.machineDeployments[0].rollout.strategy.rollingUpdate", "both"),
        (lambda s: worker(s).update(healthCheck={"checks": {"nodeStartupTimeoutSeconds": 5}}), "spec.workers.machineDeployments[0].healthCheck.checks.nodeStartupTimeoutSeconds", "at least 30"),
        (lambda s: worker(s).update(healthCheck={"remediation": {"maxInFlight": "x"}}), "spec.workers.machineDeployments[0].healthCheck.remediation.maxInFlight", "percent"),
        (lambda s: worker(s).update(healthCheck={"remediation": {"triggerIf": {"unhealthyInRange": "[5-2]"}}}), "spec.workers.machineDeployments[0].healthCheck.remediation.triggerIf.unhealthyInRange", "5"),
        (lambda s: s["controlPlane"].update(machineInfrastructure=None, healthCheck={"checks": {"nodeStartupTimeoutSeconds": 60}}) or s.update(patches=None), "spec.controlPlane.healthCheck", "no Machines"),
        (lambda s: s["patches"][0]["definitions"][0]["jsonPatches"][0].update(path="/metadata/name"), "spec.patches[0].definitions[0].jsonPatches[0].path", "/spec"),
        (lambda s: s["patches"][1]["definitions"][0]["jsonPatches"][0]["valueFrom"].update(variable="size"), "spec.patches[1].definitions[0].jsonPatches[0].valueFrom.variable", "size"),
        (lambda s: s["patches"][0].update(external={"generatePatchesExtension": "x"}, definitions=[]), "spec.patches[0].external", "extension"),
        (lambda s: s.update(upgrade={"external": {"generateUpgradePlanExtension": "x"}}), "spec.upgrade.external.generateUpgradePlanExtension", "kubernetesVersions"),
    ],
)  # fmt: skip
def test_classes_that_are_refused(change: Change, field: str, says: str) -> None:
    (cause,) = validate(made(change), None)
    assert cause.field == field
    assert says in cause.message


def test_nothing_is_checked_again_when_the_spec_stays() -> None:
    wrong = made(lambda s: s.update(kubernetesVersions=["1.x"]))
    assert validate({**wrong, "metadata": {"name": "c", "labels": {"a": "b"}}}, wrong) == []


# -- schemas of variables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "field", "says"),
    [
        ({}, ".type", "Required"),
        ({"type": "text"}, ".type", "Unsupported"),
        ({"type": "array"}, ".items", "Required"),
        ({"type": "object", "properties": {"a": {}}}, ".properties[a].type", "Required"),
        ({"type": "object", "properties": {"a": "string"}}, ".properties[a]", "must be a schema"),
        ({"type": "object", "properties": []}, ".properties", "must be a schema"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": 3}}}, ".properties[a].pattern", "expected `str`"),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": "x"}}}, ".properties[a].enum", "expected `array`"),
        ({"type": "object", "properties": {"a": {"type": "string", "allOf": "x"}}}, ".properties[a].allOf", "list of schemas"),
        ({"type": "array", "items": {"type": "string", "x-kubernetes-validations": [1]}}, ".items.x-kubernetes-validations[0]", "expected `object`"),
        ({"type": "integer", "default": "1"}, ".default", "integer"),
        ({"type": "integer", "minimum": 2, "default": 1}, ".default", "greater than or equal to 2"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": "c"}}, ".default", "unknown"),
        ({"type": "string", "enum": ["a", 1]}, ".enum[1]", "string"),
        ({"type": "string", "example": 1}, ".example", "string"),
        ({"type": "string", "pattern": "("}, ".pattern", "("),
        ({"type": "object", "properties": {"a": {"type": "integer", "example": "b"}}}, ".properties[a].example", "integer"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}, ".additionalProperties", "exclusive"),
        ({"type": "string", "x-kubernetes-validations": [{"rule": "self.size() >"}]}, ".x-kubernetes-validations[0].rule", "syntax"),
        ({"type": "string", "x-kubernetes-validations": [{"rule": "self > 1"}]}, ".x-kubernetes-validations[0].rule", "overload"),
        ({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1", "message": "few"}]}, ".default", "few"),
        ({"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}, ".items.x-kubernetes-validations[0].rule", "oldSelf"),
        ({"type": "string", "x-metadata": {"labels": {"a b": ""}}}, ".x-metadata.labels", "a b"),
    ],
)  # fmt: skip
def test_schemas_that_are_refused(schema: Json, field: str, says: str) -> None:
    causes = list(schema_causes(schema, "s"))
    assert [cause.field for cause in causes][:1] == [f"s{field}"]
    assert says in causes[0].message


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 1, "enum": ["a"], "example": "a", "uniqueItems": False},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
        {"x-kubernetes-int-or-string": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "exclusiveMinimum": False},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": False, "properties": {"a": {"type": "number"}}},
        {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "boolean"}}}},
        {"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "^b"}], "not": {"enum": ["ab"]}},
        {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}]},
    ],
)
def test_schemas_that_can_be_used(schema: Json) -> None:
    assert list(schema_causes(schema, "s")) == []


# -- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (lambda s: None, []),
        (lambda s: s["infrastructure"]["templateRef"].update(name="other"), []),
        (lambda s: s["controlPlane"]["templateRef"].update(apiVersion="controlplane.cluster.x-k8s.io/v1beta3"), []),
        (lambda s: worker(s)["bootstrap"]["templateRef"].update(kind="OtherConfigTemplate"), []),
        (lambda s: worker(s).update({"class": "other"}), []),
        (
            lambda s: s["infrastructure"]["templateRef"].update(kind="OtherClusterTemplate"),
            ["spec.infrastructure.templateRef.kind"],
        ),
        (
            lambda s: s["controlPlane"].pop("machineInfrastructure"),
            [f"spec.controlPlane.machineInfrastructure.templateRef.{field}" for field in ("apiVersion", "kind")],
        ),
        (
            lambda s: worker(s)["infrastructure"]["templateRef"].update(apiVersion="other/v1"),
            ["spec.workers.machineDeployments[0].infrastructure.templateRef.apiVersion"],
        ),
    ],
)
def test_kinds_of_templates_stay(change: Change, fields: list[str]) -> None:
    assert [cause.field for cause in incompatible(made(), made(change))] == fields


CHECK = {"checks": {"nodeStartupTimeoutSeconds": 60}}
SIZES = {f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{end}-size": "1" for end in ("min", "max")}


def cluster(change: Change | None = None) -> Json:
    obj = blueprint.topology("one", 1, {"a": 1}, variables={"image": "debian"})
    if change is not None:
        change(obj["spec"]["topology"])
    return obj


def first(topology: Json) -> Json:
    found: Json = topology["workers"]["machineDeployments"][0]
    return found


@pytest.mark.parametrize(
    ("before", "after", "used", "field"),
    [
        (None, lambda s: s.update(kubernetesVersions=["v1.29.0", "v1.30.0"]), None, ""),
        (None, lambda s: s.update(kubernetesVersions=["v1.31.0"]), None, "spec.kubernetesVersions"),
        (None, lambda s: worker(s).update({"class": "x"}), None, "spec.workers.machineDeployments"),
        (
            lambda s: s["controlPlane"].update(healthCheck=CHECK),
            None,
            lambda t: t["controlPlane"].update(healthCheck={"enabled": True}),
            "spec.controlPlane.healthCheck",
        ),
        (
            lambda s: s["controlPlane"].update(healthCheck=CHECK),
            None,
            lambda t: t["controlPlane"].update(healthCheck={"enabled": True, **CHECK}),
            "",
        ),
        (
            lambda s: worker(s).update(healthCheck=CHECK),
            None,
            lambda t: first(t).update(healthCheck={"enabled": True}),
            "spec.workers.machineDeployments[0].healthCheck",
        ),
        (
            None,
            lambda s: worker(s).update(metadata={"annotations": SIZES}),
            None,
            "spec.workers.machineDeployments[0].metadata.annotations",
        ),
        (None, lambda s: worker(s).update(metadata={"annotations": SIZES}), lambda t: first(t).pop("replicas"), ""),
        (None, lambda s: s["variables"].pop(0), None, "spec.variables"),
        (
            None,
            lambda s: s["variables"][0]["schema"].update(openAPIV3Schema={"type": "string", "enum": ["ubuntu"]}),
            None,
            "spec.variables",
        ),
        (
            None,
            lambda s: s["variables"].append(
                {"name": "zone", "required": True, "schema": {"openAPIV3Schema": {"type": "string"}}}
            ),
            None,
            "spec.variables",
        ),
        (
            None,
            lambda s: s["variables"].append(
                {"name": "zone", "required": True, "schema": {"openAPIV3Schema": {"type": "string", "default": "a"}}}
            ),
            None,
            "",
        ),
    ],
)
def test_a_class_keeps_what_clusters_use(
    before: Change | None, after: Change | None, used: Change | None, field: str
) -> None:
    user = cluster(used)
    kept = copy.deepcopy(user)
    found = list(usage_causes(made(before), made(after), [user]))
    assert [cause.field for cause in found] == ([field] if field else [])
    assert all("default/one" in cause.message for cause in found)
    assert list(usage_causes(made(before), made(after), [])) == []
    assert user == kept


def test_a_class_is_used_by_name_and_namespace() -> None:
    assert uses(cluster(), "default", "plain")
    assert not uses(cluster(), "other", "plain")
    assert not uses(cluster(), "default", "other")
    assert uses(cluster(lambda t: t["classRef"].update(namespace="other")), "other", "plain")
    assert not uses({"metadata": {"namespace": "default"}, "spec": {}}, "default", "plain")


def test_a_class_in_use_is_not_deleted_and_some_users_are_named() -> None:
    assert list(deletion_causes([])) == []
    (cause,) = deletion_causes([cluster()] * 5)
    assert "default/one" in cause.message
    assert "and 2 more" in cause.message


def test_a_variable_goes_in_three_steps() -> None:
    """A default that was filled in keeps its variable: first the default goes, then the values, then the variable."""

    def without_default(spec: Json) -> None:
        del spec["variables"][0]["schema"]["openAPIV3Schema"]["default"]

    def without(spec: Json) -> None:
        spec["variables"].pop(0)

    users = [cluster()] * 5
    (cause,) = usage_causes(made(), made(without), users)
    assert 'variable "image"' in cause.message
    assert "remove the default first" in cause.message
    assert list(usage_causes(made(), made(without_default), users)) == []
    bare = [cluster(lambda t: t.pop("variables"))]
    assert list(usage_causes(made(without_default), made(without), bare)) == []


def test_of_many_clusters_that_could_not_follow_a_few_are_reported() -> None:
    def narrow(spec: Json) -> None:
        spec["variables"][0]["schema"]["openAPIV3Schema"] = {"type": "string", "enum": ["ubuntu"]}

    assert len(list(usage_causes(made(), made(narrow), [cluster()] * 50))) == 3
