"""What does not compile, and where the message points."""

from __future__ import annotations

import pytest

from homeport.machinery.cel import DYN, INT, STRING, CelError, compile, list_of, map_of

VARIABLES = {
    "object": DYN,
    "name": STRING,
    "count": INT,
    "names": list_of(STRING),
    "labels": map_of(STRING, STRING),
}

REJECTED = [
    # syntax
    ("", 1, "unexpected end of expression"),
    ("1 +", 4, "unexpected end of expression"),
    ("(1", 3, "expecting ')'"),
    ("1 1", 3, "unexpected '1'"),
    ("[1, 2", 6, "expecting ']'"),
    ("{'a' 1}", 6, "expecting ':'"),
    ("name..size()", 6, "expecting a name"),
    ("name # 1", 6, "token recognition error"),
    ("'open", 1, "token recognition error"),
    ("'bad \\q'", 1, "token recognition error"),
    ("true ? 1", 9, "expecting ':'"),
    ("1 = 1", 3, "token recognition error"),
    ("while == 1", 1, "reserved identifier: while"),
    ("count == 1 && for", 15, "reserved identifier: for"),
    ("object.true", 8, "reserved word 'true'"),
    ("9223372036854775808", 1, "invalid int literal"),
    ("18446744073709551616u", 1, "invalid uint literal"),
    ("'\\ud800'", 1, "invalid unicode code point"),
    ("Foo{a: 1}", 1, "objects can't be constructed"),
    # names
    ("nope == 1", 1, "undeclared reference to 'nope'"),
    ("name == 'a' || nope", 16, "undeclared reference to 'nope'"),
    ("nope(1)", 1, "undeclared reference to 'nope'"),
    ("name.nope()", 6, "undeclared reference to 'nope'"),
    ("names.all(x, x == y)", 19, "undeclared reference to 'y'"),
    ("names.all(x, x == '') && x == ''", 26, "undeclared reference to 'x'"),
    ("math.greatest(1, 2)", 1, "undeclared reference to 'math'"),
    # types
    ("name + 1", 6, "found no matching overload for '_+_' applied to '(string, int)'"),
    ("name == 1", 6, "found no matching overload for '_==_' applied to '(string, int)'"),
    ("name < count", 6, "found no matching overload for '_<_'"),
    ("name.startsWith(1)", 6, "found no matching overload for 'startsWith' applied to 'string.(int)'"),
    ("size(1)", 1, "found no matching overload for 'size'"),
    ("name && true", 1, "expected type 'bool' but found 'string'"),
    ("true && false && count", 18, "expected type 'bool' but found 'int'"),
    ("!name", 1, "found no matching overload for '!_'"),
    ("name ? 1 : 2", 6, "found no matching overload for '_?_:_'"),
    ("true ? 1 : 'a'", 6, "found no matching overload for '_?_:_'"),
    ("count.field", 6, "type 'int' does not support field selection"),
    ("names.all(x, x)", 14, "expected type 'bool' but found 'string'"),
    ("count.all(x, true)", 1, "cannot be range of a comprehension"),
    ("names.filter(x, x)", 17, "expected type 'bool' but found 'string'"),
    ("1 in names", 3, "found no matching overload for '@in'"),
    ("labels[1]", 7, "found no matching overload for '_[_]'"),
    ("[1, 'a']", 5, "expected type 'int' but found 'string'"),
    ("{'a': 1, 'b': 'c'}", 15, "expected type 'int' but found 'string'"),
    ("[?1]", 3, "expected type 'optional_type(int)' but found 'int'"),
    ("name.orValue('a')", 6, "found no matching overload for 'orValue'"),
    # macros
    ("names.all(1, true)", 11, "argument must be a simple name"),
    ("names.all(x.y, true)", 12, "argument must be a simple name"),
    ("names.all(x, x, true)", 14, "duplicate variable name: x"),
    ("has(name)", 5, "invalid argument to has() macro"),
    ("has(object['a'])", 11, "invalid argument to has() macro"),
    ("names.map(__result__, 1)", 11, "iteration variable overwrites accumulator variable"),
    # literals that can't be read
    ("name.matches('[')", 14, "invalid matches argument"),
    ("name.matches('(?<x>a)(?=b)')", 14, "invalid matches argument"),
    ("duration('1 hour') > duration('1s')", 10, "invalid duration argument"),
    ("timestamp('yesterday') == timestamp(0)", 11, "invalid timestamp argument"),
    ("int('x') == 1", 5, "invalid int argument"),
    ("'%d'.format(['a'])", 14, "decimal clause can only be used on integers"),
    ("'%d %d'.format([1])", 1, "index 1 out of range"),
    ("'%d'.format([1, 2])", 6, "too many arguments supplied to string.format (expected 1, got 2)"),
    ("'%k'.format([1])", 1, 'unrecognized formatting clause "k"'),
]


@pytest.mark.parametrize(("expression", "column", "message"), REJECTED)
def test_expression_is_rejected_where_it_is_wrong(expression: str, column: int, message: str) -> None:
    with pytest.raises(CelError) as caught:
        compile(expression, VARIABLES)
    assert message in str(caught.value)
    assert caught.value.column == column
    assert str(caught.value).endswith(f"(col {column})")


def test_a_position_in_a_later_line_names_the_line() -> None:
    with pytest.raises(CelError) as caught:
        compile("name == 'a' &&\n  nope", VARIABLES)
    assert str(caught.value) == "undeclared reference to 'nope' (line 2, col 3)"


def test_the_authorizer_is_said_to_be_unsupported() -> None:
    with pytest.raises(CelError, match="authorizer is not supported"):
        compile("authorizer.path('/').check('get').allowed()", {"authorizer": DYN})


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 500 + "1" + ")" * 500,
        "[" * 500 + "]" * 500,
        "!" * 100_001 + "true",
        "+".join(["1"] * 1000),
        "object" + ".a" * 1000,
        "object" + "[0]" * 1000,
        "object" + ".f()" * 1000,
        "true ? " * 300 + "1" + " : 2" * 300,
        "{'a': " * 300 + "1" + "}" * 300,
        "[1].map(x, " * 100 + "1" + ")" * 100,
        "size(" * 300 + "'a'" + ")" * 300,
        "'" + "a" * 100_001 + "'",
        "1" * 90_000,
    ],
    ids=lambda text: text[:8] + "...",
)
def test_what_is_nested_too_deeply_is_an_error_and_no_crash(expression: str) -> None:
    with pytest.raises(CelError):
        compile(expression, VARIABLES)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 50 + "true" + ")" * 50,
        " && ".join(["count == 1"] * 2000) + " || true",
        "+".join(["count"] * 150) + " == 150",
        "true ? true : " * 40 + "true",
        "[[[[[[[[[[1]]]]]]]]]].size() == 1",
        "names.all(a, " * 15 + "true" + ")" * 15,
        "!" * 1000 + "true",
    ],
    ids=lambda text: text[:8] + "...",
)
def test_deep_but_bearable_expressions_work(expression: str) -> None:
    values = {"object": {}, "name": "", "count": 1, "names": ["a"], "labels": {}}
    assert compile(expression, VARIABLES).evaluate(values) is True


def test_the_callers_stack_depth_makes_no_difference() -> None:
    def compile_below(frames: int) -> object:
        if frames:
            return compile_below(frames - 1)
        return compile("+".join(["1"] * 150)).evaluate()

    assert compile_below(600) == 150


def test_a_shadowed_variable_is_the_inner_one() -> None:
    assert compile("names.map(name, name + '!')", VARIABLES).evaluate({"names": ["a"], "name": "outer"}) == ["a!"]


def test_nested_macros_see_outer_variables() -> None:
    program = compile("names.all(x, names.exists(y, x == y && name == 'n'))", VARIABLES)
    assert program.evaluate({"names": ["a", "b"], "name": "n"}) is True
    assert program.evaluate({"names": ["a", "b"], "name": "m"}) is False


def test_the_text_of_an_expression_never_becomes_code() -> None:
    hostile = "'\"); import os; (\"' + \"' + __import__('os') + '\""
    assert compile(hostile).evaluate() == "\"); import os; (\"' + __import__('os') + '"
    assert compile("'\\n\\x00\\u2028{c}'").evaluate() == "\n\x00\u2028{c}"
