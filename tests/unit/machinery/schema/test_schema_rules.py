"""Where CEL rules come in."""

from __future__ import annotations

from typing import Any, NamedTuple

from homeport.machinery.schema import compile_checker

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "string", "minLength": 2}},
        }
    },
}


class Broken(NamedTuple):
    path: str
    message: str
    reason: str
    value: Any


class Small:
    """A rule: spec.a stays below ten and does not shrink."""

    def validate(self, obj: Any, old: Any = None) -> list[Broken]:
        a = obj["spec"]["a"]
        if a < 10 and (old is None or a >= old["spec"]["a"]):
            return []
        return [Broken("spec.a", "too big or shrinking", "FieldValueInvalid", a)]


def test_rules_run_after_the_schema_with_the_old_object() -> None:
    checker = compile_checker(SCHEMA, rules=Small())
    assert checker.validate({"metadata": {}, "spec": {"a": 5}}) == []
    assert checker.validate({"metadata": {}, "spec": {"a": 50}}) == [
        ("FieldValueInvalid", "Invalid value: 50: too big or shrinking", "spec.a")
    ]
    assert len(checker.validate({"metadata": {}, "spec": {"a": 5}}, {"metadata": {}, "spec": {"a": 6}})) == 1


def test_rules_are_left_out_when_the_object_could_mislead_them() -> None:
    checker = compile_checker(SCHEMA, rules=Small())
    found = checker.validate({"metadata": {}, "spec": {}})
    assert [v.reason for v in found] == ["FieldValueRequired", "FieldValueInvalid"]
    assert found[1] == (
        "FieldValueInvalid",
        "Invalid value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation",
        "<nil>",
    )


def test_rules_still_run_beside_harmless_errors() -> None:
    checker = compile_checker(SCHEMA, rules=Small())
    found = checker.validate({"metadata": {}, "spec": {"a": 50, "b": "x"}})
    assert [v.field for v in found] == ["spec.b", "spec.a"]


def test_rules_are_compiled_when_first_needed() -> None:
    compiled: list[int] = []

    def late() -> Small:
        compiled.append(1)
        return Small()

    checker = compile_checker(SCHEMA, rules=late)
    checker.settle({"metadata": {}, "spec": {"a": 5}})
    assert compiled == []
    checker.validate({"metadata": {}, "spec": {"a": 5}})
    checker.validate({"metadata": {}, "spec": {"a": 5}})
    assert compiled == [1]
