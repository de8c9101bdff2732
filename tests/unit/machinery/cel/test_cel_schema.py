"""Values as their schema types them."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.machinery.cel import Rules
from homeport.machinery.cel.names import escape, unescape

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": STRING, "weight": INTEGER, "since": {"type": "string", "format": "date-time"}},
    },
}
PROPERTIES: dict[str, Any] = {
    "text": STRING,
    "other": STRING,
    "count": INTEGER,
    "ratio": {"type": "number"},
    "whole": {"type": "number"},
    "on": {"type": "boolean"},
    "port": {"x-kubernetes-int-or-string": True},
    "percent": {"x-kubernetes-int-or-string": True},
    "at": {"type": "string", "format": "date-time"},
    "later": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "wait": {"type": "string", "format": "duration"},
    "data": {"type": "string", "format": "byte"},
    "names": {"type": "array", "items": STRING},
    "ratios": {"type": "array", "items": {"type": "number"}},
    "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
    "same": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
    "pools": KEYED,
    "groups": {"type": "array", "items": KEYED},
    "labels": {"type": "object", "additionalProperties": STRING},
    "stamps": {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}},
    "inner": {"type": "object", "properties": {"deep": {"type": "object", "properties": {"x": INTEGER}}}},
    "maybe": {"type": "string", "nullable": True},
    "maybes": {"type": "array", "items": {"type": "string", "nullable": True}},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": STRING}},
    "dotted.name": STRING,
    "dashed-name": STRING,
    "slashed/name": STRING,
    "double__under": STRING,
    "namespace": STRING,
    "in": STRING,
    "$ref": STRING,
    "template": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"spec": {"type": "object", "properties": {"size": INTEGER}}},
    },
}
OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "thing-1", "labels": {"a": "b"}},
    "text": "hello",
    "other": "hello",
    "count": 3,
    "ratio": 0.5,
    "whole": 2,
    "on": True,
    "port": 80,
    "percent": "25%",
    "at": "2024-02-29T12:00:00Z",
    "later": "2024-02-29T14:00:00+01:00",
    "day": "2024-02-29",
    "wait": "1h30m",
    "data": "aGVsbG8=",
    "names": ["x", "y"],
    "ratios": [1, 2.5],
    "times": ["2024-01-02T00:00:00Z", "2024-01-01T00:00:00Z"],
    "tags": ["a", "b", "c"],
    "same": ["c", "b", "a"],
    "pools": [{"name": "one", "weight": 1, "since": "2024-01-01T00:00:00Z"}, {"name": "two"}],
    "groups": [
        [{"name": "one", "weight": 1, "since": "2024-01-01T00:00:00Z"}, {"name": "two"}],
        [{"name": "two"}, {"name": "one", "weight": 1, "since": "2024-01-01T00:00:00Z"}],
        [{"name": "one", "weight": 2}],
    ],
    "labels": {"app": "web", "a/b": "c"},
    "stamps": {"first": "2024-01-01T00:00:00Z"},
    "inner": {"deep": {"x": 7}},
    "maybe": None,
    "maybes": ["a", None],
    "anything": {"free": [1]},
    "open": {"known": "k", "unknown": 1},
    "dotted.name": "dot",
    "dashed-name": "dash",
    "slashed/name": "slash",
    "double__under": "under",
    "namespace": "ns",
    "in": "within",
    "$ref": "unreachable",
    "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"size": 4}, "extra": 1},
}


def rules(*expressions: str) -> Rules:
    entries = [{"rule": each} for each in expressions]
    return Rules({"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": entries})


HOLDS = [
    "type(self.ratio) == double && type(self.whole) == double && self.whole / 4.0 == 0.5",
    "self.ratio < self.count && self.count > 2.5",
    "self.ratios.all(x, type(x) == double) && self.ratios.sum() == 3.5 && self.ratios[0] == 1.0",
    "type(self.port) == int && self.port > 79 && type(self.percent) == string && self.percent.endsWith('%')",
    "self.port == 80 && self.percent == '25%' && self.port != self.percent",
    "self.later > self.at && self.later - self.at == duration('1h') && self.at.getDate() == 29",
    "type(self.at) == google.protobuf.Timestamp && self.day == timestamp('2024-02-29T00:00:00Z')",
    "self.wait == duration('90m') && self.wait.getMinutes() == 90",
    "self.data == b'hello' && type(self.data) == bytes && string(self.data) == 'hello'",
    "!self.times.isSorted() && self.times.max() == timestamp('2024-01-02T00:00:00Z')",
    "self.times.exists(t, t < timestamp('2024-01-02T00:00:00Z')) && self.times.map(t, t.getDate()) == [2, 1]",
    "self.times.all(i, t, t.getFullYear() == 2024) && self.stamps.all(k, t, t.getFullYear() == 2024)",
    "self.stamps.first < self.at && self.stamps['first'] < self.at && self.stamps.transformMap(k, t, t.getDate()) == {'first': 1}",
    # lists that are sets or maps by their keys
    "self.tags == self.same && self.tags == ['b', 'a', 'c'] && self.tags != ['a', 'b']",
    "(self.tags + ['c', 'd']).size() == 4 && self.tags + self.same == self.tags",
    "self.groups[0] == self.groups[1] && self.groups[0] + self.groups[1] == self.groups[0]",
    "self.groups[0] != self.groups[2] && (self.groups[0] + self.groups[2])[0].weight == 2",
    "self.groups.all(g, g.exists(p, p.name == 'one')) && self.groups.indexOf(self.groups[1]) == 0",
    "self.pools[0] != self.pools[1] && self.groups[0][0] == self.groups[1][1]",
    "self.pools.exists(p, has(p.since) && p.since < self.at) && self.pools.map(p, p.name) == ['one', 'two']",
    "self.pools.filter(p, has(p.weight)).all(p, p.weight == 1 && p.since < self.at)",
    "self.pools.filter(p, has(p.weight))[0].since < self.at",
    "dyn(self.pools) == dyn(self.groups[1]) && dyn(self).tags == dyn(self).same",
    "self.names == ['x', 'y'] && self.names != ['y', 'x'] && self.names + ['z'] == ['x', 'y', 'z']",
    "self.groups[0].indexOf(self.groups[1][0]) == 1 && self.groups[1][0] in self.groups[0]",
    # null, unknown and hidden
    "!has(self.maybe) && self.?maybe == optional.none() && type(self.maybes[1]) == null_type",
    "self.maybes.exists(m, dyn(m) == null) && self.open == self.open && self.open.known == 'k'",
    # names
    "self.dotted__dot__name == 'dot' && self.dashed__dash__name == 'dash' && self.slashed__slash__name == 'slash'",
    "self.double__underscores__under == 'under' && self.__namespace__ == 'ns' && self.namespace == 'ns'",
    "self.__in__ == 'within' && has(self.dotted__dot__name) && self.?dashed__dash__name.orValue('') == 'dash'",
    "dyn(self).dotted__dot__name == 'dot' && dyn(self).__in__ == 'within'",
    "self.labels['a/b'] == 'c' && self.labels.app == 'web' && 'app' in self.labels && !has(self.labels.nope)",
    # resources
    "self.kind == 'Thing' && self.apiVersion == 'example.com/v1' && self.metadata.name == 'thing-1'",
    "!has(self.metadata.generateName)",
    "self.template.kind == 'Pod' && self.template.metadata.name == 'p' && self.template.spec.size == 4",
    # objects
    "self.inner.deep.x == 7 && self.inner == self.inner && type(self.inner) == map && type(self) == type(self.inner)",
    "self.?inner.?deep.?x.orValue(0) == 7 && self.?inner.deep.x.optMap(x, x + 1).value() == 8",
    "(self.on ? self.groups[0] : self.groups[1])[0].name == 'one'",
    "[self.inner, self.inner].all(i, i.deep.x == 7) && {'k': self.inner}.k.deep.x == 7",
    "self.text == self.other && self.text.size() + self.names.size() == 7",
]


@pytest.mark.parametrize("expression", HOLDS)
def test_rule_holds_on_typed_data(expression: str) -> None:
    compiled = rules(expression)
    assert [problem.message for problem in compiled.problems if "cost" not in problem.message] == []
    assert compiled.validate(OBJECT) == []


@pytest.mark.parametrize("expression", HOLDS)
def test_rule_holds_on_typed_data_when_every_error_is_tracked(expression: str) -> None:
    tree = rules(expression)._tree
    assert tree is not None
    program = tree.rules[0].program
    assert program is not None
    assert program._run_exactly((OBJECT, None))[0] is True


REJECTED = [
    ("self.nope == 1", "undefined field 'nope'"),
    ("self.anything == 1", "undefined field 'anything'"),
    ("self.open.unknown == 1", "undefined field 'unknown'"),
    ("self.metadata.labels == {}", "undefined field 'labels'"),
    ("self.template.extra == 1", "undefined field 'extra'"),
    ("self.dotted.name == ''", "undefined field 'dotted'"),
    ("self.text == 1", "found no matching overload for '_==_'"),
    ("self.at == '2024-02-29T12:00:00Z'", "found no matching overload for '_==_'"),
    ("self.ratio == 1", "found no matching overload for '_==_'"),
    ("self.text == null", "found no matching overload for '_==_'"),
    ("self.inner == self.open", "found no matching overload for '_==_'"),
    ("self.names.all(x, x > 1)", "found no matching overload for '_>_'"),
    ("self.labels.all(k, v, v == 1)", "found no matching overload for '_==_'"),
    ("self.all(k, true)", "cannot be range of a comprehension"),
    ("cel.bind(x, self.text, x == '')", "undeclared reference to 'cel'"),
    ("self.text", "cel expression must evaluate to a bool"),
    ("self.port", "cel expression must evaluate to a bool"),
    ("authorizer.path('/x').check('get').allowed()", "undeclared reference to 'authorizer'"),
]


@pytest.mark.parametrize(("expression", "message"), REJECTED)
def test_rule_is_rejected_against_the_schema(expression: str, message: str) -> None:
    problems = rules(expression).problems
    assert problems[0].path == "spec.validation.openAPIV3Schema.x-kubernetes-validations[0].rule"
    assert message in problems[0].message


FAILS = [
    ("self.maybe == 'x'", "no such key: maybe evaluating rule: self.maybe == 'x'"),
    ("self.names[5] == 'x'", "index out of bounds: 5 evaluating rule: self.names[5] == 'x'"),
    ("self.labels.nope == 'x'", "no such key: nope evaluating rule: self.labels.nope == 'x'"),
    ("self.pools[1].since < self.at", "no such key: since evaluating rule: self.pools[1].since < self.at"),
    (
        "self.percent > 3",
        "'no such overload': call arguments did not match a supported operator, function or macro signature "
        "for rule: self.percent > 3",
    ),
    ("self.text == 'bye'", "failed rule: self.text == 'bye'"),
]


@pytest.mark.parametrize(("expression", "message"), FAILS)
def test_failing_rule_says_why(expression: str, message: str) -> None:
    (violation,) = rules(expression).validate(OBJECT)
    assert (violation.message, violation.reason) == (message, "FieldValueInvalid")


def test_a_rule_on_a_scalar_sees_the_typed_value() -> None:
    schema = {
        "type": "object",
        "properties": {
            "at": {
                "type": "string",
                "format": "date-time",
                "x-kubernetes-validations": [{"rule": "self.getFullYear() > 2000"}],
            },
            "n": {"type": "number", "x-kubernetes-validations": [{"rule": "type(self) == double && self < 10.0"}]},
        },
    }
    compiled = Rules(schema)
    assert compiled.validate({"at": "2024-01-01T00:00:00Z", "n": 3}) == []
    violations = compiled.validate({"at": "1999-01-01T00:00:00Z", "n": 11})
    assert [(v.path, v.value) for v in violations] == [("at", "1999-01-01T00:00:00Z"), ("n", 11)]


def test_data_that_is_not_of_its_type_is_a_violation_and_no_crash() -> None:
    compiled = rules(
        "self.at < self.later", "self.count > 1", "self.names.all(x, x.size() > 0)", "self.wait > duration('1s')"
    )
    broken = OBJECT | {"at": "never", "count": "3", "names": {"a": 1}, "wait": "soon"}
    assert len(compiled.validate(broken)) >= 3


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("plain", "plain"),
        ("a.b", "a__dot__b"),
        ("a-b/c", "a__dash__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("if", "__if__"),
        ("true", "__true__"),
        ("_x", "_x"),
        ("a_b", "a_b"),
        ("1a", None),
        ("", None),
        ("$a", None),
        ("ä", None),
    ],
)
def test_property_names_are_escaped_and_read_back(name: str, identifier: str | None) -> None:
    assert escape(name) == identifier
    if identifier is not None:
        assert unescape(identifier) == name


def test_an_unknown_escape_is_not_a_property() -> None:
    assert unescape("a__nope__b") is None
    assert unescape("a__if__") is None
