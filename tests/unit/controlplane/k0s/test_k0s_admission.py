"""What a K0sControlPlane may say."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.controlplane.k0s.admission import default, validate, validate_template, warn

REF = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "NutanixMachineTemplate", "name": "t"}


def plane(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    given = {"version": "v1.33.4+k0s.0", "machineTemplate": {"infrastructureRef": REF}, "k0sConfigSpec": {}, **spec}
    return {"metadata": {"name": "a"}, "spec": given, "status": status or {}}


def test_the_finalizer_and_the_v_of_the_version_are_filled_in() -> None:
    obj = plane(version="1.33.4+k0s.0")
    default(obj, None)
    assert obj["metadata"]["finalizers"] == ["k0s.controlplane.cluster.x-k8s.io"]
    assert obj["spec"]["version"] == "v1.33.4+k0s.0"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, ""),
        ({"version": ""}, "spec.version"),
        ({"version": "v1.33"}, "spec.version"),
        ({"version": "v1.31.1+k0s.1"}, "spec.version"),
        ({"replicas": 0}, "spec.replicas"),
        ({"replicas": 3, "k0sConfigSpec": {"args": ["--single"]}}, "spec.replicas"),
        ({"updateStrategy": "Recreate", "k0sConfigSpec": {"args": ["--single"]}}, "spec.updateStrategy"),
        ({"replicas": 1, "updateStrategy": "RecreateDeleteFirst"}, "spec.updateStrategy"),
        ({"replicas": 3, "updateStrategy": "RecreateDeleteFirst"}, ""),
        (
            {"machineTemplate": {"infrastructureRef": {**REF, "name": ""}}},
            "spec.machineTemplate.infrastructureRef.name",
        ),
        ({"k0sConfigSpec": {"args": ["--taints=x"]}}, "spec.k0sConfigSpec.args"),
        ({"k0sConfigSpec": {"tunneling": {"enabled": True}}}, "spec.k0sConfigSpec.tunneling.enabled"),
        ({"replicas": 3, "k0sConfigSpec": {"k0s": {"spec": {"storage": {"type": "kine"}}}}}, "spec.replicas"),
    ],
)
def test_what_can_not_work_is_refused(spec: dict[str, Any], field: str) -> None:
    assert [each.field for each in validate(plane(**spec), None)] == ([field] if field else [])


@pytest.mark.parametrize(
    ("runs", "old", "new", "allowed"),
    [
        ("", "v1.33.4+k0s.0", "v1.34.1+k0s.0", True),
        ("", "v1.33.4+k0s.0", "v1.33.4-k0s.0", True),
        ("", "v1.33.4+k0s.0", "v1.33.4+k0s.1", True),
        ("", "v1.33.4+k0s.0", "v1.35.0+k0s.0", False),
        ("", "v1.33.4+k0s.0", "v1.33.3+k0s.0", False),
        ("", "v1.33.4+k0s.1", "v1.33.4+k0s.0", False),
        ("", "v1.33.4+k0s.0", "v1.32.9+k0s.0", False),
        # What no controller runs yet may be taken back, and is no step to the next minor version.
        ("v1.33.4+k0s.0", "v1.34.1+k0s.0", "v1.33.4+k0s.0", True),
        ("v1.33.4+k0s.0", "v1.34.1+k0s.0", "v1.33.3+k0s.0", False),
        ("v1.33.4+k0s.0", "v1.34.1+k0s.0", "v1.35.0+k0s.0", False),
        ("v1.34.1+k0s.0", "v1.34.1+k0s.0", "v1.33.4+k0s.0", False),
    ],
)
def test_versions_go_up_one_minor_version_at_a_time(runs: str, old: str, new: str, allowed: bool) -> None:
    found = validate(plane({"version": runs}, version=new), plane({"version": runs}, version=old))
    assert [each.field for each in found] == ([] if allowed else ["spec.version"])


def test_the_storage_can_not_be_changed() -> None:
    new = plane(k0sConfigSpec={"k0s": {"spec": {"storage": {"type": "kine"}}}})
    assert [each.field for each in validate(new, plane())] == ["spec.k0sConfigSpec.k0s.spec.storage.type"]


def test_an_even_number_and_a_version_without_suffix_give_warnings() -> None:
    found = warn(plane(replicas=2, version="v1.33.4"), None)
    assert len(found) == 2
    assert "v1.33.4+k0s.0 is used" in found[0]
    assert "odd number" in found[1]


def test_a_template_is_immutable() -> None:
    def template(**spec: Any) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"k0sConfigSpec": {}, **spec}}}}

    assert validate_template(template(), None) == []
    assert [each.field for each in validate_template(template(version="v1.33.4"), template())] == ["spec.template.spec"]
