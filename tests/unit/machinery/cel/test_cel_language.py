"""The core language: literals, operators, macros, conversions."""

from __future__ import annotations

import math
from typing import Any

import pytest

from homeport.machinery.cel import DYN, CelError, compile
from homeport.machinery.cel.values import Duration, Timestamp, Uint

DATA: dict[str, Any] = {
    "n": 7,
    "s": "über",
    "items": [{"name": "a", "size": 1}, {"name": "b", "size": 2}],
    "labels": {"app": "web", "tier": "front"},
    "missing": None,
}


def evaluate(expression: str) -> Any:
    return compile(expression, {"data": DYN}).evaluate({"data": DATA})


HOLDS = [
    # literals
    "0x1F == 31 && 0xfu == 15u",
    "-9223372036854775808 < 0 && 9223372036854775807 > 0",
    "1.5e3 == 1500.0 && .5 == 0.5",
    r"'tab\there' == 'tab	here' && '\u00fc\x41\101\U0001F600' == 'üAA😀'",
    r"r'\d' == '\\d' && R" + '"\\n"' + r" == '\\n'",
    '"""a"b\nc""" == "a\\"b\\nc"',
    r"b'\xff\101' == b'\377A' && bytes('ü') == b'ü'",
    "[1, 2,] == [1, 2] && {'a': 1,} == {'a': 1}",
    "true // the rest is a comment",
    # arithmetic
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1",
    "7u / 2u == 3u && 7u % 2u == 1u",
    "1.0 / 0.0 == double('inf') && -1.0 / 0.0 == double('-inf')",
    "-(-3) == 3 && !!true && - 2 + 5 == 3",
    "2 + 3 * 4 == 14 && (2 + 3) * 4 == 20 && 10 - 4 - 3 == 3",
    "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]",
    # comparison across types
    "1 < 1.5 && 1u < 2 && 2 > 1u && 1.0 <= 1 && -1 < 1u",
    "dyn(1) == 1.0 && dyn(1u) == 1 && dyn(1) != '1' && dyn(true) != 1",
    "9007199254740993 > 9007199254740992.0",
    "'a' < 'b' && b'a' < b'b' && false < true && 'Z' < 'a'",
    "[1, 2] == [1, 2] && [1, 2] != [2, 1] && {'a': [1]} == {'a': [1]}",
    "[dyn(1), dyn(2.0)] == [dyn(1.0), dyn(2)] && dyn({'a': 1}) == dyn({'a': 1.0})",
    "null == null && dyn(null) != 0",
    "double('nan') != double('nan')",
    # logic
    "(1 / 0 == 1 || true) && !(1 / 0 == 1 && false)",
    "true || 1 / 0 == 1 && false",
    "false ? 1 / 0 == 1 : true",
    "true ? true : false ? 1 / 0 == 1 : false",
    # containers
    "2 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1} && !('b' in {'a': 1})",
    "dyn(1.0) in [1, 2] && dyn(1u) in {1: 'a'}",
    "{true: 'b'}[true] == 'b'",
    "[1, 2, 3][1] == 2 && {'a': {'b': 3}}.a.b == 3",
    "data.items[0].name == 'a' && data['labels']['app'] == 'web' && data.labels.tier == 'front'",
    "has(data.labels.app) && !has(data.labels.nope) && has(data.missing)",
    "size('über') == 4 && 'über'.size() == 4 && size(b'\\xc3\\xbc') == 2 && size({'a': 1}) == 1",
    # macros
    "data.items.all(x, x.size > 0) && data.items.exists(x, x.name == 'b')",
    "data.items.exists_one(x, x.size == 1) && data.items.existsOne(x, x.size == 1)",
    "!data.items.exists_one(x, x.size > 0)",
    "data.items.map(x, x.name) == ['a', 'b'] && data.items.map(x, x.size > 1, x.name) == ['b']",
    "data.items.filter(x, x.size > 1) == [data.items[1]]",
    "data.labels.all(k, data.labels[k] != '') && data.labels.map(k, k).sort() == ['app', 'tier']",
    "[1, 2, 3].exists(x, x / 0 == 1 || x == 2)",
    "[].all(x, false)",
    "![1, 2].all(x, 1 / (x - 1) == 1 && x != 2)",
    "[1, 2].map(x, [3, 4].map(y, x * y)) == [[3, 4], [6, 8]]",
    "[1].map(x, [2].map(x, x)) == [[2]]",
    "['a', 'b'].all(i, x, i < 2 && x != '') && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
    "['a', 'b'].transformList(i, x, x + string(i)) == ['a0', 'b1']",
    "['a', 'b'].transformList(i, x, i > 0, x) == ['b']",
    "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10) == {'b': 20}",
    "['a', 'b'].transformMapEntry(i, x, {x: i}) == {'a': 0, 'b': 1}",
    "{'a': 1}.exists_one(k, v, v == 1)",
    "cel.bind(x, 'ab', x + x) == 'abab' && cel.bind(x, 1 / 0, true)",
    # optionals
    "data.?labels.?app.orValue('no') == 'web' && data.?nope.?deeper.orValue('no') == 'no'",
    "data.?labels.app.value() == 'web' && data[?'nope'] == optional.none()",
    "[1, 2][?1] == optional.of(2) && [1, 2][?5].or([3][?0]).value() == 3",
    "optional.of(3).optMap(x, x * 2) == optional.of(6) && !optional.none().optMap(x, x).hasValue()",
    "optional.of([1])[0].value() == 1 && {'a': 2}[?'a'].optFlatMap(x, optional.none()) == optional.none()",
    "[?optional.none(), 1, ?optional.of(2)] == [1, 2] && {?'a': optional.none(), 'b': 1} == {'b': 1}",
    "optional.ofNonZeroValue('') == optional.none() && optional.ofNonZeroValue(1).value() == 1",
    "optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1)].unwrapOpt() == [1]",
    "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
    "optional.of(1).orValue(1 / 0) == 1",
    # types
    "type(1) == int && type(1u) == uint && type(1.0) == double && type('') == string && type(b'') == bytes",
    "type([]) == list && type({}) == map && type(null) == null_type && type(int) == type",
    "type(true) == bool && type(duration('1s')) == google.protobuf.Duration",
    "type(timestamp(0)) == google.protobuf.Timestamp && type([1]) == type(['a'])",
    "type(data.n) == int && type(data.items) == list && type(data.labels) == map",
    # conversions
    "int('-5') == -5 && int(5.9) == 5 && int(-5.9) == -5 && int(5u) == 5",
    "uint(5) == 5u && uint('7') == 7u && double(3) == 3.0 && double('1e2') == 100.0",
    "string(5) == '5' && string(true) == 'true' && string(b'x') == 'x' && string(2u) == '2'",
    "string(1.0) == '1' && string(0.1) == '0.1' && string(1234567.0) == '1.234567e+06'",
    "string(1e-7) == '1e-07' && string(100000.0) == '100000' && string(-0.00012) == '-0.00012'",
    "bool('true') && bool('T') && !bool('0')",
    "int(timestamp('1970-01-01T00:01:00Z')) == 60 && timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
    # time
    "duration('1h30m') == duration('5400s') && duration('1.5s').getMilliseconds() == 1500",
    "duration('-90m').getHours() == -1 && string(duration('1m30.5s')) == '90.5s'",
    "timestamp('2024-02-29T23:30:00-02:00') == timestamp('2024-03-01T01:30:00Z')",
    "string(timestamp('2024-02-29T23:30:00.120-02:00')) == '2024-02-29T23:30:00.12-02:00'",
    "timestamp('2024-03-01T00:00:00Z') - timestamp('2024-02-29T00:00:00Z') == duration('24h')",
    "timestamp('2024-03-01T00:00:00Z') + duration('1ns') > timestamp('2024-03-01T00:00:00Z')",
    "timestamp('2024-12-25T10:20:30.456Z').getMonth() == 11",
    "timestamp('2024-12-25T10:20:30.456Z').getDayOfWeek() == 3",
    "timestamp('2024-12-25T10:20:30.456Z').getDayOfYear() == 359",
    "timestamp('2024-12-25T10:20:30.456Z').getHours('+05:30') == 15",
    "timestamp('2024-12-25T10:20:30.456Z').getMinutes('-00:30') == 50",
    "timestamp('2024-12-25T10:20:30.456Z').getHours('Europe/Berlin') == 11",
    "timestamp('2024-12-25T10:20:30.456Z').getMilliseconds() == 456",
]


@pytest.mark.parametrize("expression", HOLDS)
def test_cel_expression_is_true(expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize("expression", HOLDS)
def test_expression_holds_when_every_error_is_tracked(expression: str) -> None:
    """The exact way of evaluating gives the same answers as the fast one."""
    program = compile(expression, {"data": DYN})
    assert program._run_exactly((DATA,))[0] is True


ERRORS = [
    ("9223372036854775807 + 1", "integer overflow"),
    ("-9223372036854775808 - 1", "integer overflow"),
    ("9223372036854775807 * 2", "integer overflow"),
    ("-(-9223372036854775808)", "integer overflow"),
    ("-9223372036854775808 / -1", "integer overflow"),
    ("18446744073709551615u + 1u", "unsigned integer overflow"),
    ("1u - 2u", "unsigned integer overflow"),
    ("uint(dyn(-1))", "unsigned integer overflow"),
    ("int(dyn(1e30))", "integer overflow"),
    ("1 / 0", "division by zero"),
    ("1 % 0", "modulus by zero"),
    ("1u / 0u", "division by zero"),
    ("[1][1]", "index out of bounds: 1"),
    ("[1][-1]", "index out of bounds: -1"),
    ("{'a': 1}['b']", "no such key: b"),
    ("data.nope", "no such key: nope"),
    ("data.labels.nope == 'x'", "no such key: nope"),
    ("dyn('a') + 1", "no such overload"),
    ("dyn(1) && true", "no such overload"),
    ("dyn('a') < 1", "no such overload"),
    ("dyn(1).startsWith('a')", "no such overload: startsWith(int, string)"),
    ("optional.none().value()", "optional.none() dereference"),
    ("int(dyn('x'))", "type conversion error from 'string' to 'int'"),
    ("double('nan') < 1.0", "NaN values cannot be ordered"),
    ("duration(dyn('1 day'))", "type conversion error from 'string' to 'google.protobuf.Duration'"),
    ("timestamp(dyn('2024-02-30T00:00:00Z'))", "type conversion error"),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"),
    ("duration('2562047h') + duration('2562047h')", "duration overflow"),
    ("1 / 0 == 1 || false", "division by zero"),
    ("[1, 2].all(x, x / 0 == 1)", "division by zero"),
    ("[1, 2].exists_one(x, x / 0 == 1)", "division by zero"),
    ("['a', 'b'].transformMapEntry(i, x, {'k': i})", "insert failed: key k already exists"),
    ("string(dyn(b'\\xff'))", "invalid UTF-8"),
    ("timestamp(0).getHours('Nowhere/Land')", "unknown time zone Nowhere/Land"),
    ("data.items.all(x, x.nope)", "no such key: nope"),
    ("data.items.map(x, x.size + 'a')", "no such overload"),
]


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_evaluation_fails_with_the_reason(expression: str, message: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluate(expression)
    assert message in str(caught.value)


def test_values_come_back_as_python() -> None:
    assert evaluate("[data.n]") == [7]
    assert evaluate("{'a': [1, 2]}") == {"a": [1, 2]}
    assert evaluate("data.n + 1") == 8
    assert isinstance(evaluate("3u"), Uint)
    assert evaluate("duration('1s')") == Duration(1_000_000_000)
    assert evaluate("timestamp(1)") == Timestamp(1_000_000_000)
    assert math.isnan(evaluate("double('nan')"))


def test_a_variable_that_is_not_given_is_named() -> None:
    with pytest.raises(CelError, match="no such attribute"):
        compile("data.x", {"data": DYN}).evaluate({})


def test_a_declared_variable_that_is_not_used_need_not_be_given() -> None:
    assert compile("1 == 1", {"data": DYN}).evaluate() is True


def test_booleans_and_numbers_are_different_map_keys() -> None:
    program = compile("dyn({dyn(1): 'one', dyn(true): 'yes'})[k]", {"k": DYN})
    assert program.evaluate({"k": 1}) == "one"
    assert program.evaluate({"k": True}) == "yes"
    with pytest.raises(CelError, match="no such key"):
        program.evaluate({"k": False})
