"""Variables: defaults, what is refused and where, overrides."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import ClusterClass, ClusterVariable
from homeport.core.topology.variable import variable

PATH = "spec.topology.variables"


def cluster_class(**schemas: Any) -> dict[str, Any]:
    """A class with these variables; a name that ends with `_` is required."""
    listed = [
        {"name": name.rstrip("_"), "required": name.endswith("_"), "schema": {"openAPIV3Schema": schema}}
        for name, schema in schemas.items()
    ]
    return {"metadata": {"name": "c"}, "spec": {"variables": listed}}


def given(**values: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


MACHINE = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "pattern": "^[a-z0-9.-]+$"},
        "cores": {"type": "integer", "minimum": 1, "maximum": 64, "default": 2},
        "disks": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "object", "properties": {"size": {"type": "string", "default": "20Gi"}}},
        },
    },
}


def test_defaults_are_added_behind_what_is_set_in_alphabetical_order() -> None:
    known = variable.definitions(
        cluster_class(
            z={"type": "string", "default": "last"}, b={"type": "integer", "default": 0}, a={"type": "string"}
        )
    )
    assert variable.defaulted(given(z="mine"), known) == given(z="mine", b=0)
    assert variable.defaulted([], known) == given(b=0, z="last")


def test_defaults_reach_into_objects_and_lists() -> None:
    known = variable.definitions(cluster_class(machine=MACHINE))
    found = variable.defaulted(given(machine={"image": "ubuntu", "disks": [{}]}), known)
    assert found == given(machine={"image": "ubuntu", "cores": 2, "disks": [{"size": "20Gi"}]})


def test_a_default_of_an_object_is_filled_in_itself() -> None:
    known = variable.definitions(cluster_class(machine={**MACHINE, "default": {"image": "ubuntu"}}))
    assert variable.defaulted([], known) == given(machine={"image": "ubuntu", "cores": 2})


def test_defaulting_twice_changes_nothing() -> None:
    known = variable.definitions(cluster_class(machine=MACHINE, zone={"type": "string", "default": "a"}))
    once = variable.defaulted(given(machine={"image": "ubuntu"}), known)
    assert variable.defaulted(once, known) == once


def test_overrides_get_no_variables_that_they_do_not_name() -> None:
    known = variable.definitions(cluster_class(machine=MACHINE, zone={"type": "string", "default": "a"}))
    found = variable.defaulted(given(machine={"image": "ubuntu"}), known, overrides=True)
    assert found == given(machine={"image": "ubuntu", "cores": 2})


def test_what_is_given_is_not_changed() -> None:
    known, mine = variable.definitions(cluster_class(machine=MACHINE)), given(machine={"image": "ubuntu"})
    variable.defaulted(mine, known)
    assert mine == given(machine={"image": "ubuntu"})


@pytest.mark.parametrize(
    ("value", "field", "says"),
    [
        ({"image": "ubuntu", "cores": 65}, "[machine].value.cores", "less than or equal to 64"),
        ({"image": "ubuntu", "cores": "4"}, "[machine].value.cores", "must be of type integer"),
        ({"cores": 4}, "[machine].value.image", "Required value"),
        ({"image": "Ubuntu"}, "[machine].value.image", "should match"),
        ({"image": "ubuntu", "disks": [{}, {}, {}]}, "[machine].value.disks", "at most 2"),
        ({"image": "ubuntu", "disks": [{"size": 1}]}, "[machine].value.disks[0].size", "must be of type string"),
        ({"image": "ubuntu", "core": 4}, "[machine].value.core", "does not define this field"),
        ("ubuntu", "[machine].value", "must be of type object"),
        (None, "[machine].value", "must be of type object"),
    ],
)
def test_a_wrong_value_is_refused_naming_the_field(value: Any, field: str, says: str) -> None:
    known = variable.definitions(cluster_class(machine=MACHINE))
    ((path, message),) = variable.invalid(given(machine=value), known, path=PATH)
    assert path == PATH + field
    assert says in message


def test_right_values_are_let_through() -> None:
    known = variable.definitions(
        cluster_class(machine=MACHINE, tags={"type": "object", "additionalProperties": {"type": "string"}})
    )
    values = variable.defaulted(given(machine={"image": "ubuntu"}, tags={"a": "b"}), known)
    assert variable.invalid(values, known, path=PATH) == []


def test_values_of_every_type_are_let_through() -> None:
    kinds: dict[str, Any] = {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "number"},
        "d": {"type": "boolean"},
        "e": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "f": {"x-kubernetes-int-or-string": True},
        "g": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "h": {"type": "string", "enum": ["x", "y"], "format": "", "x-metadata": {"labels": {"a": "b"}}},
    }
    values = given(a="", b=0, c=1.5, d=False, e=["x"], f="25%", g={"any": {"thing": 1}}, h="y")
    assert variable.invalid(values, variable.definitions(cluster_class(**kinds)), path=PATH) == []


def test_a_required_variable_that_is_missing_is_named() -> None:
    known = variable.definitions(cluster_class(zone_={"type": "string"}))
    ((path, message),) = variable.invalid([], known, path=PATH)
    assert path == PATH
    assert '"zone"' in message
    assert variable.invalid([], known, path=PATH, overrides=True) == []


def test_a_variable_that_the_class_does_not_define_is_reported_with_those_it_does() -> None:
    known = variable.definitions(cluster_class(zone={"type": "string"}, image={"type": "string"}))
    ((path, message),) = variable.invalid(given(zon="a"), known, path=PATH)
    assert path == f"{PATH}[zon]"
    assert "image, zone" in message


def test_a_variable_that_is_set_twice_is_refused() -> None:
    known = variable.definitions(cluster_class(zone={"type": "string"}))
    ((path, message),) = variable.invalid([*given(zone="a"), *given(zone="b")], known, path=PATH)
    assert path == f"{PATH}[zone]"
    assert message.startswith("Duplicate value")


def test_rules_of_the_schema_are_checked() -> None:
    schema = {
        "type": "object",
        "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "low is above high"}],
    }
    known = variable.definitions(cluster_class(band=schema))
    assert variable.invalid(given(band={"low": 1, "high": 2}), known, path=PATH) == []
    ((path, message),) = variable.invalid(given(band={"low": 3, "high": 2}), known, path=PATH)
    assert (path, "low is above high" in message) == (f"{PATH}[band].value", True)


def test_rules_about_changes_compare_with_the_old_value() -> None:
    schema = {
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "the zone stays"}],
    }
    known = variable.definitions(cluster_class(zone=schema))
    assert variable.invalid(given(zone="b"), known, path=PATH) == []
    assert variable.invalid(given(zone="b"), known, old=given(zone="b"), path=PATH) == []
    ((path, message),) = variable.invalid(given(zone="b"), known, old=given(zone="a"), path=PATH)
    assert (path, "the zone stays" in message) == (f"{PATH}[zone].value", True)


def test_a_rule_that_came_later_counts_for_values_that_stay() -> None:
    schema = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "too few"}]}
    known = variable.definitions(cluster_class(count=schema))
    assert len(variable.invalid(given(count=1), known, old=given(count=1), path=PATH)) == 1


def test_overrides_come_before_values_of_the_whole() -> None:
    assert variable.effective(given(a=1, b=2), given(b=3)) == {"a": 1, "b": 3}


def test_classes_and_values_may_be_typed() -> None:
    raw = cluster_class(machine=MACHINE, flag={"type": "boolean", "default": False})
    known = variable.definitions(msgspec.convert(raw, ClusterClass))
    assert known == variable.definitions(raw)
    typed = [ClusterVariable(name="machine", value={"image": "ubuntu"})]
    found = variable.defaulted(typed, known)
    assert found == given(machine={"image": "ubuntu", "cores": 2}, flag=False)
    assert variable.effective(typed) == {"machine": {"image": "ubuntu"}}
