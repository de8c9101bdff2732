"""Rules of a schema on objects and their updates."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from homeport.machinery.cel import MISSING, Rules, compile_rules

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def schema(properties: dict[str, Any], *rules: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if rules:
        made["x-kubernetes-validations"] = list(rules)
    return made


def with_rules(base: dict[str, Any], *rules: str | dict[str, Any]) -> dict[str, Any]:
    entries = [{"rule": each} if isinstance(each, str) else each for each in rules]
    return base | {"x-kubernetes-validations": entries}


def found(rules: Rules, obj: Any, old: Any = MISSING) -> list[tuple[str, str]]:
    return [(violation.path, violation.message) for violation in rules.validate(obj, old)]


def test_a_schema_without_rules_compiles_to_nothing() -> None:
    assert compile_rules(schema({"a": STRING})) == (None, [])


def test_violations_name_the_field() -> None:
    pool = schema({"name": with_rules(STRING, {"rule": "self != ''", "message": "name it"})})
    rules = Rules(
        schema(
            {
                "spec": schema(
                    {
                        "pools": {"type": "array", "items": pool},
                        "sizes": {"type": "object", "additionalProperties": with_rules(INTEGER, "self > 0")},
                        "a.b": with_rules(STRING, "self == 'x'"),
                    }
                )
            }
        )
    )
    obj = {"spec": {"pools": [{"name": "a"}, {"name": ""}], "sizes": {"m": 1, "l": -1}, "a.b": "y"}}
    assert found(rules, obj) == [
        ("spec.pools[1].name", "name it"),
        ("spec.sizes[l]", "failed rule: self > 0"),
        ("spec.a.b", "failed rule: self == 'x'"),
    ]
    assert [v.value for v in rules.validate(obj)] == ["", -1, "y"]


def test_reason_and_field_path_are_taken_over() -> None:
    rules = Rules(
        schema(
            {"low": INTEGER, "high": INTEGER, "tags": {"type": "object", "additionalProperties": STRING}},
            {"rule": "self.low < self.high", "reason": "FieldValueForbidden", "fieldPath": ".high", "message": " no "},
            {"rule": "'a' in self.tags", "reason": "FieldValueRequired", "fieldPath": ".tags['a']"},
            {"rule": "self.low != 5", "reason": "FieldValueDuplicate"},
        )
    )
    assert rules.problems == []
    violations = rules.validate({"low": 5, "high": 2, "tags": {}})
    assert [(v.path, v.reason, v.message, v.value) for v in violations] == [
        ("high", "FieldValueForbidden", "no", None),
        ("tags[a]", "FieldValueRequired", "failed rule: 'a' in self.tags", None),
        ("", "FieldValueDuplicate", "failed rule: self.low != 5", None),
    ]


def test_a_message_expression_words_the_violation() -> None:
    rule = {"rule": "self < 5", "message": "fallback"}
    rules = Rules(
        schema(
            {
                "a": with_rules(INTEGER, rule | {"messageExpression": "'%d is not below 5'.format([self])"}),
                "b": with_rules(INTEGER, rule | {"messageExpression": "'' + ['a'][self]"}),
                "c": with_rules(INTEGER, rule | {"messageExpression": "'two\\nlines'"}),
                "d": with_rules(INTEGER, rule | {"messageExpression": "'  '"}),
            }
        )
    )
    assert found(rules, {"a": 7, "b": 7, "c": 7, "d": 7}) == [
        ("a", "7 is not below 5"),
        ("b", "fallback"),
        ("c", "fallback"),
        ("d", "fallback"),
    ]


def test_null_and_absent_values_are_not_validated() -> None:
    rules = Rules(schema({"a": with_rules(STRING | {"nullable": True}, "self == 'x'")}))
    assert found(rules, {"a": None}) == []
    assert found(rules, {}) == []
    assert rules.validate(None) == []


def test_rules_added_by_all_of_hold_too() -> None:
    rules = Rules(
        schema({"a": INTEGER})
        | {
            "allOf": [
                {"x-kubernetes-validations": [{"rule": "self.a > 0"}]},
                {"properties": {"a": with_rules({}, "self < 9")}},
            ]
        }
    )
    assert rules.problems == []
    assert found(rules, {"a": 0}) == [("", "failed rule: self.a > 0")]
    assert found(rules, {"a": 10}) == [("a", "failed rule: self < 9")]


# --- transitions


def test_transition_rules_run_only_on_updates() -> None:
    rules = Rules(schema({"a": with_rules(STRING, {"rule": "self == oldSelf", "message": "immutable"})}))
    assert found(rules, {"a": "x"}) == []
    assert found(rules, {"a": "x"}, {}) == []
    assert found(rules, {"a": "x"}, {"a": "x"}) == []
    assert found(rules, {"a": "y"}, {"a": "x"}) == [("a", "immutable")]
    assert found(rules, {}, {"a": "x"}) == []


def test_an_optional_old_self_is_there_on_creation_too() -> None:
    rule = {"rule": "oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", "optionalOldSelf": True}
    rules = Rules(schema({"n": with_rules(INTEGER, rule)}))
    assert rules.problems == []
    assert found(rules, {"n": 1}) == [("n", f"failed rule: {rule['rule']}")]
    assert found(rules, {"n": 0}) == []
    assert found(rules, {"n": 2}, {"n": 1}) == []
    assert found(rules, {"n": 1}, {"n": 2}) != []


def test_items_are_matched_by_their_keys_whatever_their_order() -> None:
    item = schema({"name": STRING, "zone": STRING, "size": with_rules(INTEGER, "self >= oldSelf")})
    rules = Rules(
        schema(
            {
                "pools": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "zone"],
                    "items": item,
                }
            }
        )
    )
    assert rules.problems == []

    def pool(name: str, zone: str, size: int) -> dict[str, Any]:
        return {"name": name, "zone": zone, "size": size}

    old = {"pools": [pool("a", "1", 5), pool("a", "2", 1), pool("b", "1", 3)]}
    new = {"pools": [pool("b", "1", 2), pool("c", "1", 0), pool("a", "2", 1), pool("a", "1", 4)]}
    assert [path for path, _ in found(rules, new, old)] == ["pools[0].size", "pools[3].size"]


def test_entries_of_maps_are_matched_by_key() -> None:
    rules = Rules(schema({"m": {"type": "object", "additionalProperties": with_rules(INTEGER, "self >= oldSelf")}}))
    assert [path for path, _ in found(rules, {"m": {"a": 1, "b": 1}}, {"m": {"a": 2}})] == ["m[a]"]


@pytest.mark.parametrize("list_type", [None, "atomic", "set"])
def test_old_self_can_not_be_used_where_items_can_not_be_matched(list_type: str | None) -> None:
    items = {"type": "array", "maxItems": 5, "items": with_rules(STRING | {"maxLength": 9}, "self == oldSelf")}
    if list_type:
        items["x-kubernetes-list-type"] = list_type
    problems = Rules(schema({"l": items})).problems
    assert [(p.path, p.message) for p in problems] == [
        (
            "spec.validation.openAPIV3Schema.properties[l].items.x-kubernetes-validations[0].rule",
            "oldSelf cannot be used on the uncorrelatable portion of the schema within "
            "spec.validation.openAPIV3Schema.properties[l]",
        )
    ]


# --- ratcheting: what was broken before may stay

NAMED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": schema({"name": STRING, "size": with_rules(INTEGER, "self > 0")}, {"rule": "self.name != 'bad'"}),
}
PLAIN = {"type": "array", "items": schema({"size": with_rules(INTEGER, "self > 0")})}
RATCHET = Rules(
    schema(
        {
            "spec": with_rules(schema({"n": with_rules(INTEGER, "self > 0"), "other": STRING}), "self.n != 13"),
            "named": with_rules(NAMED, "self.size() < 3"),
            "plain": PLAIN,
        },
        {"rule": "!has(self.spec) || self.spec.n != 99"},
    )
)


def test_a_broken_value_that_did_not_change_is_let_through() -> None:
    old = {"spec": {"n": -1, "other": "a"}}
    assert found(RATCHET, old) == [("spec.n", "failed rule: self > 0")]
    assert found(RATCHET, {"spec": {"n": -1, "other": "b"}}, old) == []
    assert found(RATCHET, {"spec": {"n": -2, "other": "a"}}, old) == [("spec.n", "failed rule: self > 0")]


def test_a_rule_of_an_object_counts_as_changed_when_any_of_its_fields_did() -> None:
    old = {"spec": {"n": 13, "other": "a"}}
    assert found(RATCHET, copy.deepcopy(old), old) == []
    assert found(RATCHET, {"spec": {"n": 13, "other": "b"}}, old) == [("spec", "failed rule: self.n != 13")]


def test_keyed_items_are_let_through_one_by_one() -> None:
    old = {"named": [{"name": "bad", "size": -1}, {"name": "b", "size": -2}]}
    new = {"named": [{"name": "b", "size": -2}, {"name": "bad", "size": -3}]}
    assert found(RATCHET, new, old) == [
        ("named[1]", "failed rule: self.name != 'bad'"),
        ("named[1].size", "failed rule: self > 0"),
    ]


def test_reordering_keyed_items_is_not_a_change() -> None:
    items = [{"name": "a", "size": 1}, {"name": "b", "size": 1}, {"name": "c", "size": 1}]
    assert found(RATCHET, {"named": items}) == [("named", "failed rule: self.size() < 3")]
    assert found(RATCHET, {"named": items[::-1]}, {"named": copy.deepcopy(items)}) == []


def test_items_without_keys_are_let_through_only_when_the_whole_list_is_the_same() -> None:
    old = {"plain": [{"size": -1}, {"size": 1}]}
    assert found(RATCHET, copy.deepcopy(old), old) == []
    assert found(RATCHET, {"plain": [{"size": -1}, {"size": 2}]}, old) == [("plain[0].size", "failed rule: self > 0")]


def test_the_root_is_never_unchanged_as_its_metadata_is_not_described() -> None:
    obj = {"metadata": {"name": "x"}, "spec": {"n": 99}}
    assert found(RATCHET, copy.deepcopy(obj), obj) == [("", "failed rule: !has(self.spec) || self.spec.n != 99")]


def test_transition_rules_are_not_let_through() -> None:
    rules = Rules(schema({"n": with_rules(INTEGER, "self > oldSelf")}))
    assert found(rules, {"n": 1}, {"n": 1}) == [("n", "failed rule: self > oldSelf")]


# --- broken rules


def test_problems_say_where_in_the_definition_they_are() -> None:
    rules, problems = compile_rules(
        schema(
            {
                "spec": with_rules(
                    schema({"a": STRING}), "self.a == 1", "self.a", {"rule": "true", "messageExpression": "1"}
                )
            }
        ),
        path="spec.versions[0].schema.openAPIV3Schema",
    )
    base = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations"
    assert [(p.path, p.message) for p in problems] == [
        (
            f"{base}[0].rule",
            "compilation failed: ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(string, int)'"
            "\n | self.a == 1\n | .......^",
        ),
        (f"{base}[1].rule", "cel expression must evaluate to a bool"),
        (f"{base}[2].messageExpression", "messageExpression must evaluate to a string"),
    ]
    assert rules is not None
    assert [v.message for v in rules.validate({"spec": {"a": "x"}})] == [
        f"rule compile error: {problems[0].message}",
        "rule compile error: cel expression must evaluate to a bool",
    ]


@pytest.mark.parametrize(
    ("rule", "part", "message"),
    [
        ({"rule": " "}, "rule", "rule is not specified"),
        ({"rule": "true", "message": " "}, "message", "must be non-empty if specified"),
        ({"rule": "true", "message": "a\nb"}, "message", "must not contain line breaks"),
        ({"rule": "true &&\ntrue"}, "message", "message must be specified if rule contains line breaks"),
        ({"rule": "true", "messageExpression": " "}, "messageExpression", "must be non-empty if specified"),
        ({"rule": "true", "reason": "Nope"}, "reason", 'Unsupported value: "Nope"'),
        ({"rule": "true", "fieldPath": ".nope"}, "fieldPath", "must be a valid path"),
        ({"rule": "true", "fieldPath": "a"}, "fieldPath", "must be a valid path"),
        ({"rule": "true", "fieldPath": ".a["}, "fieldPath", "must be a valid path"),
        ({"rule": "true", "fieldPath": ".a\n"}, "fieldPath", "must not contain line breaks"),
        ({"rule": "true", "optionalOldSelf": True}, "optionalOldSelf", "may not be set if oldSelf is not used in rule"),
    ],
)
def test_a_badly_written_rule_is_a_problem(rule: dict[str, Any], part: str, message: str) -> None:
    problems = Rules(schema({"a": STRING}, rule)).problems
    assert problems[0].path.endswith(f"x-kubernetes-validations[0].{part}")
    assert message in problems[0].message


# --- budgets


def test_a_rule_that_costs_too_much_ends_the_validation() -> None:
    items = {"type": "array", "items": INTEGER}
    nested = {"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", "message": "heavy"}
    rules = Rules(schema({"l": with_rules(items, nested, "self.size() < 0")}))
    (violation,) = rules.validate({"l": list(range(1000))})
    assert violation.path == "l"
    assert "actual cost limit exceeded" in violation.message
    assert "no further validation rules will be run" in violation.message
    assert "heavy" in violation.message


def test_all_rules_together_have_a_budget() -> None:
    cheap = {"rule": "self.all(a, self.all(b, a == b || a != b))"}
    rules = Rules(
        schema(
            {"m": {"type": "object", "additionalProperties": with_rules({"type": "array", "items": INTEGER}, cheap)}}
        )
    )
    obj = {"m": {f"k{n}": list(range(300)) for n in range(40)}}
    (violation,) = rules.validate(obj)
    assert violation.message == (
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )
