"""Updates of objects that were valid once and are not any more."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery.schema import SchemaChecker, compile_checker

ITEM = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string", "maxLength": 3}}}


@pytest.fixture
def checker() -> SchemaChecker:
    return compile_checker(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "required": ["must"],
                    "properties": {
                        "a": {"type": "string", "maxLength": 3},
                        "b": {"type": "string"},
                        "must": {"type": "string"},
                        "keyed": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": ITEM,
                        },
                        "plain": {"type": "array", "items": ITEM},
                        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    },
                },
                "status": {"type": "object", "properties": {"phase": {"type": "string", "enum": ["Up", "Down"]}}},
            },
        }
    )


def obj(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"must": "x", **spec}}


def fields(found: Any) -> list[str]:
    return [v.field for v in found]


def test_an_unchanged_bad_value_is_tolerated(checker: SchemaChecker) -> None:
    assert checker.validate(obj(a="long text", b="new"), obj(a="long text", b="old")) == []


def test_a_changed_bad_value_is_not(checker: SchemaChecker) -> None:
    assert fields(checker.validate(obj(a="other text"), obj(a="long text"))) == ["spec.a"]


def test_a_missing_field_is_tolerated_only_while_its_parent_is_unchanged(checker: SchemaChecker) -> None:
    old: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"b": "x"}}
    labelled = {"metadata": {"name": "a", "labels": {"k": "v"}}, "spec": {"b": "x"}}
    assert checker.validate(labelled, old) == []
    changed = {"metadata": {"name": "a"}, "spec": {"b": "y"}}
    assert fields(checker.validate(changed, old)) == ["spec.must"]


def test_items_of_a_keyed_list_are_followed_by_key(checker: SchemaChecker) -> None:
    old = obj(keyed=[{"name": "one", "value": "too long"}])
    new = obj(keyed=[{"name": "two", "value": "ok"}, {"name": "one", "value": "too long"}])
    assert checker.validate(new, old) == []


def test_items_of_a_plain_list_are_not_followed(checker: SchemaChecker) -> None:
    old = obj(plain=[{"name": "one", "value": "too long"}])
    new = obj(plain=[{"name": "one", "value": "too long"}, {"name": "two"}])
    assert fields(checker.validate(new, old)) == ["spec.plain[0].value"]
    assert checker.validate(obj(b="x", plain=old["spec"]["plain"]), old) == []


def test_old_duplicates_are_tolerated_new_ones_are_not(checker: SchemaChecker) -> None:
    assert checker.validate(obj(set=["a", "a", "b"]), obj(set=["a", "a"])) == []
    assert fields(checker.validate(obj(set=["a", "a"]), obj(set=["a"]))) == ["spec.set[1]"]


def test_a_write_to_the_status_looks_at_the_status_only(checker: SchemaChecker) -> None:
    old = {**obj(a="long text"), "status": {"phase": "Up"}}
    bad = {**obj(a="long text"), "status": {"phase": "Sideways"}}
    found = checker.validate_status(bad, old)
    assert fields(found) == ["status.phase"]
    assert found[0].message == 'Unsupported value: "Sideways": supported values: "Up", "Down"'
    assert checker.validate_status({**bad, "status": {"phase": "Down"}}, old) == []
