"""Cost estimates. The figures are those a kube-apiserver 1.37 computes for the same schema and rule."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery.cel import Rules
from homeport.machinery.cel.rule import Rule
from homeport.machinery.cel.schema import declare
from homeport.machinery.cel.tree import EXPRESSION_COST_LIMIT

STRING = {"type": "string"}
PROPERTIES: dict[str, Any] = {
    "name": {"type": "string", "maxLength": 10},
    "free": STRING,
    "kind": {"type": "string", "enum": ["a", "abcd"]},
    "n": {"type": "integer"},
    "names": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 5}},
    "all": {"type": "array", "items": STRING},
    "pools": {
        "type": "array",
        "maxItems": 4,
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 8}, "size": {"type": "integer"}},
        },
    },
    "labels": {"type": "object", "maxProperties": 6, "additionalProperties": {"type": "string", "maxLength": 7}},
}
ESTIMATES = [
    ("self.n > 0", 3),
    ("has(self.n) && self.n > 0", 4),
    ("self.name == 'abc'", 3),
    ("self.name == self.free", 8),
    ("self.free.contains(self.name)", 1258296),
    ("self.name.matches('^[a-z]+$')", 12),
    ("self.free.matches('^[a-z]+$')", 629148),
    ("self.kind == 'a' || self.kind.startsWith('ab')", 6),
    ("self.names.all(x, x.size() > 0)", 63),
    ("self.names.exists(x, x == self.name)", 93),
    ("self.names.all(x, self.names.exists_one(y, x == y))", 673),
    ("self.all.all(x, self.all.exists_one(y, x == y))", 345880409622760653),
    ("self.pools.map(p, p.name).size() > 0", 71),
    ("self.pools.filter(p, p.size > 1).size() == 0", 79),
    ("self.labels.all(k, self.labels[k] != '')", 45),
    ("self.labels.all(k, v, v.size() > 0)", 39),
    ("self.names.join(',').size() < 9", 25),
    ("self.name.split(',').size() < 3", 12),
    ("self.name.replace('a', 'bb') == ''", 10),
    ("self.name + self.name == ''", 12),
    ("self.names == ['a']", 13),
    ("self.name in ['a', 'b']", 14),
    ("self.name in self.names", 14),
    ("sets.contains(self.names, ['a'])", 23),
    ("self.names.sort() == self.names", 226),
    ("self.names.distinct().size() == 1", 215),
    ("quantity(self.name).isInteger()", 7),
    ("self.?name.orValue('') == ''", 3),
    ("self.?name.optMap(x, x.size() > 2).orValue(true)", 21),
    ("[has(self.n), has(self.name)].exists_one(x, x)", 20),
    ("self.pools.transformMap(i, p, p.size).size() == 0", 55),
    ("format.dns1123Label().validate(self.name).hasValue()", 132),
    ("ip(self.name).family() == 4", 8),
    ("self.n > 0 ? self.name == 'a' : self.free == 'b'", 6),
    ("self.pools.sortBy(p, p.size).size() == 0", 126),
]


@pytest.mark.parametrize(("expression", "cost"), ESTIMATES)
def test_estimate_is_the_one_of_kubernetes(expression: str, cost: int) -> None:
    schema = {"type": "object", "properties": PROPERTIES}
    declared = declare(schema, root=True)
    assert declared is not None
    rule = Rule({"rule": expression}, declared, schema)
    assert rule.problems == []
    assert rule.cost == cost


def test_the_estimate_is_no_less_than_what_running_costs() -> None:
    schema = {"type": "object", "properties": PROPERTIES}
    declared = declare(schema, root=True)
    assert declared is not None
    obj = {
        "name": "1234567890",
        "free": "f" * 100,
        "kind": "abcd",
        "n": 1,
        "names": ["12345", "abcde"] * 5,
        "all": ["x"] * 20,
        "pools": [{"name": "a", "size": 3}, {"name": "b", "size": 1}],
        "labels": {"a": "1234567", "b": "c"},
    }
    for expression, cost in ESTIMATES:
        program = Rule({"rule": expression}, declared, schema).program
        assert program is not None
        if "ip(" in expression or "quantity(" in expression:
            continue  # the name is neither
        assert program.run(obj, None)[1] <= cost * 1.1 + 2, expression


def rule(text: str) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, "message": "m"}]}


def test_an_unbounded_list_in_itself_is_over_the_limit() -> None:
    schema = {"type": "array", "items": STRING} | rule("self.all(x, self.exists_one(y, x == y))")
    problems = Rules({"type": "object", "properties": {"l": schema}}).problems
    assert [problem.path for problem in problems] == [
        "spec.validation.openAPIV3Schema.properties[l].x-kubernetes-validations[0].rule",
        "spec.validation.openAPIV3Schema",
    ]
    assert problems[0].message == (
        "estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
    assert problems[1].message.startswith(
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor"
    )


def test_bounds_bring_a_rule_under_the_limit() -> None:
    schema = {"type": "array", "maxItems": 50, "items": STRING | {"maxLength": 20}} | rule(
        "self.all(x, self.exists_one(y, x == y))"
    )
    assert Rules({"type": "object", "properties": {"l": schema}}).problems == []


@pytest.mark.parametrize(("items", "ok"), [(10, True), (1_000_000, True), (5_000_000, False), (None, True)])
def test_a_rule_counts_as_often_as_its_data_can_occur(items: int | None, ok: bool) -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]} | rule("self.n > 0")
    outer: dict[str, Any] = {"type": "array", "items": inner}
    if items is not None:
        outer["maxItems"] = items
    problems = Rules({"type": "object", "properties": {"l": outer}}).problems
    assert (problems == []) is ok


def test_nested_bounds_multiply() -> None:
    def nested(count: int) -> dict[str, Any]:
        leaf = {"type": "integer"} | rule("self > 0 && self < 10")
        inner = {"type": "array", "maxItems": count, "items": leaf}
        return {"type": "object", "properties": {"l": {"type": "array", "maxItems": count, "items": inner}}}

    assert Rules(nested(1000)).problems == []
    assert Rules(nested(2000)).problems != []


def test_many_rules_together_are_over_the_total() -> None:
    schema = {"type": "string", "maxLength": 600_000}
    text = "self.matches('^([a-z0-9]+[.])*[a-z0-9]+$')"
    assert Rules({"type": "object", "properties": {"s": schema | rule(text)}}).problems == []
    many = {f"s{n}": schema | rule(text) for n in range(70)}
    problems = Rules({"type": "object", "properties": many}).problems
    assert [problem.path for problem in problems] == ["spec.validation.openAPIV3Schema"]
    assert "exceeds budget by factor of 1." in problems[0].message


def test_a_costly_message_is_a_problem_of_its_own() -> None:
    entry = {"rule": "self.size() < 5", "messageExpression": "self + self + self.replace('', self)"}
    problems = Rules({"type": "object", "properties": {"s": STRING | {"x-kubernetes-validations": [entry]}}}).problems
    assert problems[0].path.endswith("x-kubernetes-validations[0].messageExpression")
    assert problems[0].message.startswith("estimated messageExpression cost exceeds budget")
    assert EXPRESSION_COST_LIMIT == 10_000_000
