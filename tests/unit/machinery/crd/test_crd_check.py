"""What may change in a definition, what is added to it, what is warned of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from homeport.machinery import crd
from homeport.machinery.yaml import load_all

Json = dict[str, Any]


def definition(**spec: Any) -> Json:
    made: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", storage=True)],
            **spec,
        },
    }
    return made


def version(name: str, *, storage: bool = False, **more: Any) -> Json:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def ready(made: Json) -> Json:
    copy: Json = json.loads(json.dumps(made))
    crd.default(copy)
    crd.remember_storage_version(copy)
    return copy


def established(made: Json) -> Json:
    copy = ready(made)
    copy["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    return copy


def fields(found: Any) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in found]


def test_names_conversion_and_stored_versions_are_filled_in() -> None:
    made = ready(definition())
    assert made["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"]["storedVersions"] == ["v1"]
    assert crd.check(made) == []


def test_the_port_of_a_conversion_service_has_a_default() -> None:
    made = definition(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "a", "namespace": "b"}},
            },
        }
    )
    made = ready(made)
    assert made["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    assert crd.check(made) == []


def test_scope_and_kind_are_fixed_once_established() -> None:
    old = established(definition())
    new = json.loads(json.dumps(old))
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Gadget"
    assert fields(crd.check(new, old)) == [
        ("spec.scope", 'Invalid value: "Cluster": field is immutable'),
        ("spec.names.kind", 'Invalid value: "Gadget": field is immutable'),
    ]
    old["status"]["conditions"] = []
    assert crd.check(new, old) == []


def test_group_and_plural_are_always_fixed() -> None:
    old = ready(definition())
    new = json.loads(json.dumps(old))
    new["spec"]["group"] = "other.com"
    new["spec"]["names"]["plural"] = "gadgets"
    assert [field for field, _ in fields(crd.check(new, old))] == ["spec.group", "spec.names.plural"]


def test_a_version_that_objects_are_stored_in_must_stay() -> None:
    old = ready(definition(versions=[version("v1", storage=True), version("v2")]))
    new = json.loads(json.dumps(old))
    new["spec"]["versions"] = [version("v2", storage=True)]
    crd.remember_storage_version(new)
    found = fields(crd.check(new, old))
    assert [field for field, _ in found] == ["status.storedVersions[0]"]
    assert "v1 was previously a storage version" in found[0][1]


def test_a_schema_that_did_not_change_is_not_judged_again() -> None:
    old = ready(definition())
    old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {}
    new = json.loads(json.dumps(old))
    new["metadata"]["labels"] = {"a": "b"}
    assert crd.check(new, old) == []
    assert crd.check(new) != []


def test_an_approval_that_was_missing_may_stay_missing() -> None:
    old = ready(definition(group="x.k8s.io"))
    old["metadata"]["name"] = "widgets.x.k8s.io"
    assert [field for field, _ in fields(crd.check(old))] == ["metadata.annotations[api-approved.kubernetes.io]"]
    assert crd.check(old, old) == []
    old["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1"}
    assert crd.check(old) == []


def test_errors_of_versions_that_differ_are_reported_at_the_version() -> None:
    second = version("v2")
    second["schema"]["openAPIV3Schema"]["properties"]["spec"] = {}
    made = ready(definition(versions=[version("v1", storage=True), second]))
    assert [field for field, _ in fields(crd.check(made))] == [
        "spec.versions[1].schema.openAPIV3Schema.properties[spec].type"
    ]


def test_a_rule_that_does_not_compile_is_refused() -> None:
    made = ready(definition())
    spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "self.nope == 'x'"}]
    found = fields(crd.check(made))
    assert [field for field, _ in found] == [
        "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    ]
    assert "undefined field 'nope'" in found[0][1]


def test_formats_that_mean_nothing_are_warned_of_once() -> None:
    made = ready(definition())
    properties = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["spec"]["properties"] = {
        "a": {"type": "string", "format": "color"},
        "b": {"type": "string", "format": "date"},
    }
    assert crd.warnings(made) == ['unrecognized format "color"']
    assert crd.warnings(made, made) == []


@pytest.mark.skipif(
    "HOMEPORT_REFERENCE" not in os.environ, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs"
)
def test_upstream_definitions_are_accepted() -> None:
    found = 0
    for path in sorted(Path(os.environ["HOMEPORT_REFERENCE"]).rglob("*.yaml")):
        for made in load_all(path.read_text(), str(path)):
            if made.get("kind") == "CustomResourceDefinition":
                made.pop("status", None)
                assert crd.check(ready(made)) == [], path
                found += 1
    assert found
