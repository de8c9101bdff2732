"""Pruning and defaulting of objects by their schema."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery.schema import compile_checker


def schema(spec: dict[str, Any], **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": spec}, **root}


def thing(spec: Any, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", **meta}, "spec": spec}


STRING = {"type": "string"}


def test_undeclared_fields_are_dropped_and_named_at_every_depth() -> None:
    checker = compile_checker(
        schema(
            {
                "type": "object",
                "properties": {
                    "name": STRING,
                    "list": {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}},
                    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING}}},
                },
            }
        )
    )
    obj = thing(
        {"name": "x", "nope": {"deep": 1}, "list": [{"a": "1"}, {"a": "2", "b": 3}], "map": {"k": {"a": "1", "c": 1}}}
    )
    obj["extra"] = 1
    assert checker.prune(obj) == ["extra", "spec.list[1].b", "spec.map.k.c", "spec.nope"]
    assert obj == thing({"name": "x", "list": [{"a": "1"}, {"a": "2"}], "map": {"k": {"a": "1"}}})


def test_an_object_that_fits_is_left_as_it_is() -> None:
    checker = compile_checker(schema({"type": "object", "properties": {"a": STRING}}))
    obj = thing({"a": "x"}, labels={"a": "b"}, finalizers=["x/y"])
    assert checker.settle(obj) == []
    assert obj == thing({"a": "x"}, labels={"a": "b"}, finalizers=["x/y"])


def test_an_object_schema_without_fields_keeps_nothing() -> None:
    checker = compile_checker(schema({"type": "object"}))
    obj = thing({"a": 1})
    assert checker.prune(obj) == ["spec.a"]
    assert obj["spec"] == {}


def test_preserved_unknown_fields_stay_but_declared_ones_below_are_still_pruned() -> None:
    checker = compile_checker(
        schema(
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"strict": {"type": "object", "properties": {"a": STRING}}},
            }
        )
    )
    obj = thing({"free": {"x": 1}, "strict": {"a": "1", "b": "2"}})
    assert checker.prune(obj) == ["spec.strict.b"]
    assert obj["spec"] == {"free": {"x": 1}, "strict": {"a": "1"}}


def test_unknown_metadata_fields_are_dropped_and_a_null_timestamp_goes() -> None:
    checker = compile_checker(schema({"type": "object"}))
    obj = thing({}, color="blue", creationTimestamp=None, ownerReferences=[{"uid": "1", "bad": True}])
    assert checker.settle(obj) == ["metadata.color", "metadata.ownerReferences[0].bad"]
    assert obj["metadata"] == {"name": "a", "ownerReferences": [{"uid": "1"}]}


def test_an_embedded_object_keeps_what_makes_it_an_object() -> None:
    checker = compile_checker(
        schema(
            {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"data": {"type": "object"}}},
        )
    )
    obj = thing({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bad": 1}, "status": {}, "data": {}})
    assert checker.prune(obj) == ["spec.metadata.bad", "spec.status"]
    assert obj["spec"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "data": {}}


def test_a_schema_that_preserves_everything_at_the_root_keeps_everything_but_bad_metadata() -> None:
    checker = compile_checker({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    obj = thing({"a": {"b": [1, {"c": None}]}}, bad=1)
    assert checker.settle(obj) == ["metadata.bad"]
    assert obj["spec"] == {"a": {"b": [1, {"c": None}]}}


def test_an_open_list_keeps_undeclared_fields_of_its_items() -> None:
    checker = compile_checker(
        schema(
            {
                "type": "array",
                "x-kubernetes-preserve-unknown-fields": True,
                "items": {"type": "object", "properties": {"a": STRING}},
            }
        )
    )
    obj = thing([{"a": "1", "b": "2"}])
    assert checker.prune(obj) == []
    assert obj["spec"] == [{"a": "1", "b": "2"}]


DEFAULTED = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "default": 1},
        "nested": {
            "type": "object",
            "default": {},
            "properties": {"mode": {"type": "string", "default": "fast"}, "other": STRING},
        },
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}},
        },
        "map": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": {"on": {"type": "boolean", "default": True}}},
        },
        "maybe": {"type": "string", "nullable": True, "default": "x"},
        "plain": STRING,
    },
}


def test_defaults_are_filled_in_through_lists_and_maps_and_inside_defaults() -> None:
    checker = compile_checker(schema(DEFAULTED))
    obj = thing({"items": [{}, {"port": 1}], "map": {"k": {}}})
    checker.default(obj)
    assert obj["spec"] == {
        "replicas": 1,
        "nested": {"mode": "fast"},
        "items": [{"port": 80}, {"port": 1}],
        "map": {"k": {"on": True}},
        "maybe": "x",
    }


def test_a_default_under_an_absent_object_is_not_filled_in() -> None:
    checker = compile_checker(schema(DEFAULTED))
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    checker.default(obj)
    assert "spec" not in obj


def test_null_becomes_the_default_or_goes_unless_it_is_allowed() -> None:
    checker = compile_checker(schema(DEFAULTED))
    obj = thing({"replicas": None, "plain": None, "maybe": None, "map": {"k": None}})
    checker.default(obj)
    assert obj["spec"] == {"replicas": 1, "nested": {"mode": "fast"}, "maybe": None, "map": {}}


def test_defaults_are_copied_not_shared() -> None:
    checker = compile_checker(schema(DEFAULTED))
    first, second = thing({}), thing({})
    checker.default(first)
    first["spec"]["nested"]["mode"] = "slow"
    checker.default(second)
    assert second["spec"]["nested"] == {"mode": "fast"}


def test_settling_is_pruning_and_defaulting() -> None:
    checker = compile_checker(schema(DEFAULTED))
    spec = {"bogus": 1, "items": [{"x": 1}], "nested": {"other": None}, "map": {"k": {"y": 2}}}
    one, two = thing({**spec}), thing({**spec})
    import copy

    two = copy.deepcopy(one)
    unknown = checker.settle(one)
    assert unknown == checker.prune(two)
    checker.default(two)
    assert one == two


@pytest.mark.parametrize("value", [5, "text", None, True, [1]])
def test_values_of_the_wrong_type_pass_through_untouched(value: Any) -> None:
    checker = compile_checker(schema({"type": "object", "nullable": True, "properties": {"a": STRING}}))
    obj = thing(value)
    assert checker.settle(obj) == []
    assert obj["spec"] == value


DEFINITIONS = {
    "Tree": {
        "type": "object",
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object", "properties": {"name": STRING}},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
            "raw": {"type": "object"},
            "protocol": {"type": "string", "default": "TCP"},
            "empty": {"type": "string", "default": ""},
            "data": {"type": "string", "format": "byte"},
        },
    }
}


def test_definitions_that_contain_themselves_are_walked_as_deep_as_the_object_goes() -> None:
    checker = compile_checker({"$ref": "#/components/schemas/Tree"}, definitions=DEFINITIONS)
    obj: dict[str, Any] = {"kind": "Tree", "children": [{"children": [{"bad": 1, "kind": "leaf"}]}]}
    assert checker.settle(obj) == ["children[0].children[0].bad"]
    assert obj["children"][0]["children"][0] == {"kind": "leaf", "protocol": "TCP"}
    obj["children"][0]["children"][0]["kind"] = 5
    assert [(v.field, v.reason) for v in checker.validate(obj)] == [
        ("children[0].children[0].kind", "FieldValueTypeInvalid")
    ]


def test_a_built_in_object_without_declared_fields_is_open_and_empty_defaults_are_not_written() -> None:
    checker = compile_checker({"$ref": "#/components/schemas/Tree"}, definitions=DEFINITIONS)
    obj = {"raw": {"any": {"thing": 1}}, "data": ""}
    assert checker.settle(obj) == []
    assert obj == {"raw": {"any": {"thing": 1}}, "protocol": "TCP", "data": ""}
    assert checker.validate(obj) == []
