"""Validation: the words and reasons of kube-apiserver."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery.schema import Violation, compile_checker

INVALID, TYPE, REQUIRED = "FieldValueInvalid", "FieldValueTypeInvalid", "FieldValueRequired"
LONG, MANY, UNSUPPORTED, DUPLICATE = (
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
)
NOWHERE = "<nil>"


def check(x: dict[str, Any], value: Any, *, required: bool = False) -> list[Violation]:
    """Validates `value` as spec.x of an object whose schema says `x` of it."""
    spec: dict[str, Any] = {"type": "object", "properties": {"x": x}}
    if required:
        spec["required"] = ["x"]
    checker = compile_checker({"type": "object", "properties": {"spec": spec}})
    return checker.validate(
        {"apiVersion": "e.com/v1", "kind": "T", "metadata": {"name": "a"}, "spec": {} if value is ... else {"x": value}}
    )


CASES = [
    ({"type": "integer"}, "a", TYPE, 'Invalid value: "string": spec.x in body must be of type integer: "string"'),
    ({"type": "string"}, 5, TYPE, 'Invalid value: "integer": spec.x in body must be of type string: "integer"'),
    ({"type": "string"}, True, TYPE, 'Invalid value: "boolean": spec.x in body must be of type string: "boolean"'),
    ({"type": "boolean"}, 1, TYPE, 'Invalid value: "integer": spec.x in body must be of type boolean: "integer"'),
    ({"type": "object"}, [], TYPE, 'Invalid value: "array": spec.x in body must be of type object: "array"'),
    (
        {"type": "array", "items": {}},
        {},
        TYPE,
        'Invalid value: "object": spec.x in body must be of type array: "object"',
    ),
    ({"type": "string"}, None, TYPE, 'Invalid value: "null": spec.x in body must be of type string: "null"'),
    (
        {"x-kubernetes-int-or-string": True},
        True,
        TYPE,
        'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
    ),
    (
        {"type": "integer", "format": "int32"},
        "a",
        TYPE,
        'Invalid value: "string": spec.x in body must be of type integer: "string"',
    ),
    (
        {"type": "string", "format": "date-time"},
        "yesterday",
        TYPE,
        'Invalid value: "yesterday": spec.x in body must be of type date-time: "yesterday"',
    ),
    (
        {"type": "string", "format": "date-time"},
        5,
        TYPE,
        'Invalid value: "int64": spec.x in body must be of type date-time: "int64"',
    ),
    (
        {"type": "string", "enum": ["a", "b"]},
        "c",
        UNSUPPORTED,
        'Unsupported value: "c": supported values: "a", "b"',
    ),
    ({"type": "integer", "enum": [1, 2]}, 3, UNSUPPORTED, 'Unsupported value: 3: supported values: "1", "2"'),
    (
        {"type": "integer", "minimum": 3},
        2,
        INVALID,
        "Invalid value: 2: spec.x in body should be greater than or equal to 3",
    ),
    (
        {"type": "integer", "maximum": 3},
        4,
        INVALID,
        "Invalid value: 4: spec.x in body should be less than or equal to 3",
    ),
    (
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        3,
        INVALID,
        "Invalid value: 3: spec.x in body should be greater than 3",
    ),
    (
        {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
        1.5,
        INVALID,
        "Invalid value: 1.5: spec.x in body should be less than 1.5",
    ),
    ({"type": "integer", "multipleOf": 5}, 7, INVALID, "Invalid value: 7: spec.x in body should be a multiple of 5"),
    ({"type": "string", "maxLength": 3}, "abcd", LONG, "Too long: may not be more than 3 bytes"),
    (
        {"type": "string", "minLength": 3},
        "ab",
        INVALID,
        'Invalid value: "ab": spec.x in body should be at least 3 chars long',
    ),
    (
        {"type": "string", "pattern": "^a+$"},
        'b"c',
        INVALID,
        'Invalid value: "b\\"c": spec.x in body should match \'^a+$\'',
    ),
    ({"type": "array", "maxItems": 1, "items": {}}, [1, 2], MANY, "Too many: 2: must have at most 1 item"),
    (
        {"type": "array", "minItems": 2, "items": {}},
        [1],
        INVALID,
        "Invalid value: 1: spec.x in body should have at least 2 items",
    ),
    (
        {"type": "object", "maxProperties": 1, "additionalProperties": True},
        {"a": 1, "b": 2},
        MANY,
        "Too many: 2: must have at most 1 item",
    ),
    (
        {"type": "object", "minProperties": 1},
        {},
        INVALID,
        "Invalid value: 0: spec.x in body should have at least 1 properties",
    ),
]


@pytest.mark.parametrize(("x", "value", "reason", "message"), CASES)
def test_a_bad_value_is_refused_in_the_servers_words(x: dict[str, Any], value: Any, reason: str, message: str) -> None:
    assert check(x, value) == [Violation(reason, message, "spec.x")]


GOOD: list[tuple[dict[str, Any], Any]] = [
    ({"type": "integer"}, 1.0),
    ({"type": "number"}, 1),
    ({"type": "string", "nullable": True}, None),
    ({"type": "string", "maxLength": 3}, "äöü"),
    ({"type": "string", "pattern": "b"}, "abc"),
    ({"type": "string", "pattern": "^(?i)ABC$"}, "abc"),
    ({"type": "string", "pattern": "(?i)^x"}, "Xyz"),
    ({"type": "string", "pattern": r"^\p{L}+$"}, "äb"),
    ({"type": "string", "pattern": r"^[[:alpha:]]+$"}, "ab"),
    ({"type": "string", "format": "no-such-format"}, "anything"),
    ({"type": "string", "format": "date-time"}, "2024-02-29T10:00:00.5+02:00"),
    ({"type": "string", "format": "date-time"}, "2026-11-15t20:32:28z"),
    ({"x-kubernetes-int-or-string": True}, "25%"),
    ({"x-kubernetes-int-or-string": True}, 3),
    ({"type": "integer", "minimum": 0, "exclusiveMinimum": False}, 0),
    ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "b"}),
    ({"x-kubernetes-preserve-unknown-fields": True}, {"any": [1, None]}),
    ({"type": "string", "nullable": True, "anyOf": [{"pattern": "a"}, {"pattern": "b"}]}, None),
    ({"type": "number", "multipleOf": 0.1}, 0.3),
]


@pytest.mark.parametrize(("x", "value"), GOOD)
def test_a_good_value_is_accepted(x: dict[str, Any], value: Any) -> None:
    assert check(x, value) == []


def test_a_missing_required_field_is_named() -> None:
    assert check({"type": "string"}, ..., required=True) == [Violation(REQUIRED, "Required value", "spec.x")]


def test_true_is_not_one_in_an_enum() -> None:
    assert check({"enum": [1]}, True)[0].reason == UNSUPPORTED
    assert check({"enum": [1]}, 1.0) == []


def test_a_trailing_newline_does_not_slip_past_an_anchored_pattern() -> None:
    assert check({"type": "string", "pattern": "^a+$"}, "aa\n")[0].reason == INVALID


@pytest.mark.parametrize(
    ("format_", "value"), [("int32", 2**31), ("int32", -(2**31) - 1), ("int64", 2**63), ("", 2**63)]
)
def test_an_integer_out_of_its_formats_range_is_refused(format_: str, value: int) -> None:
    schema = {"type": "integer", "format": format_} if format_ else {"type": "integer"}
    said = f"with format {format_}" if format_ else "(default format)"
    assert check(schema, value)[-1] == Violation(
        INVALID, f'Invalid value: "": Checked value must be of type integer {said} in spec.x', NOWHERE
    )


def test_a_fraction_is_not_an_integer() -> None:
    assert check({"type": "integer", "format": "int32"}, 1.5) == [
        Violation(TYPE, 'Invalid value: "float64": spec.x in body must be of type int32: "float64"', "spec.x"),
        Violation(
            INVALID,
            'Invalid value: "": Checked value must be of type integer with format int32 in spec.x',
            NOWHERE,
        ),
    ]


def test_items_and_map_values_are_named_by_index_and_key() -> None:
    found = check({"type": "array", "items": {"type": "string"}}, ["a", 1])
    assert [v.field for v in found] == ["spec.x[1]"]
    found = check({"type": "object", "additionalProperties": {"type": "string"}}, {"k": 1})
    assert [v.field for v in found] == ["spec.x.k"]


def test_all_errors_are_reported_at_once() -> None:
    checker = compile_checker(
        {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["a", "b"],
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}},
                }
            },
        }
    )
    found = checker.validate({"metadata": {}, "spec": {"c": "x"}})
    assert sorted(v.field for v in found) == ["spec.a", "spec.b", "spec.c"]
    assert checker.validate({"metadata": {}}) == [Violation(REQUIRED, "Required value", "spec")]


def test_one_of_tells_how_many_alternatives_fit() -> None:
    schema = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "additionalProperties": True}
    both = check(schema, {"a": 1, "b": 1})
    assert both == [
        Violation(
            INVALID,
            'Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found 2 valid alternatives',
            NOWHERE,
        )
    ]
    none = check(schema, {})
    assert none[0].message.endswith('"spec.x" must validate one and only one schema (oneOf). Found none valid')
    assert none[1] == Violation(REQUIRED, "Required value", "spec.x.a")
    assert check(schema, {"a": 1}) == []


def test_errors_of_any_of_all_of_and_not_are_reported() -> None:
    any_of = check({"type": "string", "anyOf": [{"minLength": 5}, {"pattern": "^z"}]}, "abc")
    assert any_of[0].message == 'Invalid value: "": "spec.x" must validate at least one schema (anyOf)'
    assert len(any_of) == 2
    all_of = check({"type": "string", "allOf": [{"minLength": 5}, {"pattern": "^a"}]}, "abc")
    assert all_of[-1].message == 'Invalid value: "": "spec.x" must validate all the schemas (allOf)'
    not_ = check({"type": "string", "not": {"pattern": "^a"}}, "abc")
    assert [v.message for v in not_] == ['Invalid value: "": "spec.x" must not validate the schema (not)']


def test_a_refused_alternative_under_not_is_exact() -> None:
    # The quick check knows plain dates only; under `not` that must not turn into an acceptance of odd ones.
    schema = {"type": "string", "not": {"format": "date-time", "type": "string"}}
    assert check(schema, "2024-02-29T10:00:00Z") != []
    assert check(schema, "no date") == []


def test_a_set_refuses_the_second_of_two_equal_items() -> None:
    schema = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    assert check(schema, ["a", "b", "a", "a"]) == [Violation(DUPLICATE, 'Duplicate value: "a"', "spec.x[2]")]
    assert check(schema, ["a", "b"]) == []


def test_a_keyed_list_refuses_equal_keys() -> None:
    item = {
        "type": "object",
        "properties": {"n": {"type": "string"}, "p": {"type": "string"}, "v": {"type": "integer"}},
    }
    one = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": item}
    assert check(one, [{"n": "a", "v": 1}, {"n": "a", "v": 2}]) == [
        Violation(DUPLICATE, 'Duplicate value: {"n":"a"}', "spec.x[1]")
    ]
    two = {**one, "x-kubernetes-list-map-keys": ["n", "p"]}
    assert check(two, [{"n": "a", "p": "x"}, {"n": "a", "p": "y"}]) == []
    assert check(two, [{"n": "a", "p": "x"}, {"p": "x", "n": "a"}]) == [
        Violation(DUPLICATE, 'Duplicate value: {"n":"a","p":"x"}', "spec.x[1]")
    ]


def test_an_embedded_object_must_say_what_it_is() -> None:
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    found = check(schema, {"kind": "Bad Kind", "metadata": {"labels": {"-": "x"}, "name": "a/b"}})
    assert [v.field for v in found] == [
        "spec.x.apiVersion",
        "spec.x.kind",
        "spec.x.metadata.name",
        "spec.x.metadata.labels",
    ]
    assert found[0] == Violation(REQUIRED, "Required value", "spec.x.apiVersion")
    assert found[2].message == "Invalid value: \"a/b\": may not contain '/'"
    assert check(schema, {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}}) == []


def test_metadata_has_its_types() -> None:
    checker = compile_checker({"type": "object"})
    found = checker.validate({"metadata": {"labels": {"a": 1}, "finalizers": "x"}})
    assert sorted(v.field for v in found) == ["metadata.finalizers", "metadata.labels.a"]


def test_metadata_can_be_restricted_by_the_schema() -> None:
    checker = compile_checker(
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}},
        }
    )
    assert checker.validate({"metadata": {"name": "abcd"}}) == [
        Violation(LONG, "Too long: may not be more than 3 bytes", "metadata.name")
    ]


def test_an_unreadable_pattern_refuses_every_string() -> None:
    assert check({"type": "string", "pattern": "(a"}, "a")[0].reason == INVALID
