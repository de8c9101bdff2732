"""Random expressions of the core language, evaluated here and by the C++ implementation of the language."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from homeport.machinery.cel import BOOL, DOUBLE, INT, STRING, CelError, Program, compile, list_of, map_of

oracle = pytest.importorskip("cel_expr_python.cel", reason="cel-expr-python is not installed")

VARIABLES: dict[str, Any] = {
    "i": 5,
    "d": 2.5,
    "s": "héllo",
    "b": True,
    "l": [3, 1, 2],
    "w": ["x", "yy", ""],
    "m": {"a": 1, "b": -2},
}
TYPES = {
    "i": INT,
    "d": DOUBLE,
    "s": STRING,
    "b": BOOL,
    "l": list_of(INT),
    "w": list_of(STRING),
    "m": map_of(STRING, INT),
}
ENVIRONMENT = oracle.NewEnv(
    variables={
        "i": oracle.Type.INT,
        "d": oracle.Type.DOUBLE,
        "s": oracle.Type.STRING,
        "b": oracle.Type.BOOL,
        "l": oracle.Type.List(oracle.Type.INT),
        "w": oracle.Type.List(oracle.Type.STRING),
        "m": oracle.Type.Map(oracle.Type.STRING, oracle.Type.INT),
    }
)

_ints = st.sampled_from(["0", "1", "2", "-1", "7", "9223372036854775807", "-9223372036854775808", "i", "l[0]", "m.a"])
_doubles = st.sampled_from(["0.0", "1.5", "-2.25", "1e10", "d"])
_strings = st.sampled_from(["''", "'a'", "'yy'", "'é'", "s", "w[1]", "'abcabc'"])
_bools = st.sampled_from(["true", "false", "b"])


def _pair(operators: list[str], left: Any, right: Any) -> st.SearchStrategy[str]:
    return st.tuples(left, st.sampled_from(operators), right).map(lambda t: f"({t[0]} {t[1]} {t[2]})")


def _ternary(values: Any) -> st.SearchStrategy[str]:
    return st.tuples(bools, values, values).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})")


ints: st.SearchStrategy[str] = st.deferred(
    lambda: (
        _ints
        | _pair(["+", "-", "*", "/", "%"], ints, ints)
        | ints.map(lambda x: f"(-({x}))")
        | strings.map(lambda x: f"size({x})")
        | lists.map(lambda x: f"{x}.size()")
        | doubles.map(lambda x: f"int({x})")
        | _ternary(ints)
        | st.tuples(lists, ints).map(lambda t: f"{t[0]}[{t[1]}]")
    )
)
doubles: st.SearchStrategy[str] = st.deferred(
    lambda: _doubles | _pair(["+", "-", "*", "/"], doubles, doubles) | ints.map(lambda x: f"double({x})")
)
strings: st.SearchStrategy[str] = st.deferred(
    lambda: _strings | _pair(["+"], strings, strings) | ints.map(lambda x: f"string({x})") | _ternary(strings)
)
lists: st.SearchStrategy[str] = st.deferred(
    lambda: (
        st.just("l")
        | st.lists(ints, max_size=3).map(lambda xs: f"[{', '.join(xs)}]")
        | _pair(["+"], lists, lists)
        | st.tuples(lists, ints).map(lambda t: f"{t[0]}.map(x, x + {t[1]})")
        | st.tuples(lists, ints).map(lambda t: f"{t[0]}.filter(x, x > {t[1]})")
    )
)
bools: st.SearchStrategy[str] = st.deferred(
    lambda: (
        _bools
        | _pair(["&&", "||", "==", "!="], bools, bools)
        | bools.map(lambda x: f"!({x})")
        | _pair(["<", "<=", ">", ">=", "==", "!="], ints, ints)
        | _pair(["<", "<=", ">", ">="], ints, doubles)
        | _pair(["<", "<=", ">", ">=", "==", "!="], strings, strings)
        | _pair(["==", "!="], lists, lists)
        | _pair(["in"], ints, lists)
        | st.tuples(ints, doubles).map(lambda t: f"(dyn({t[0]}) == dyn({t[1]}))")
        | st.tuples(strings, st.sampled_from(["startsWith", "endsWith", "contains"]), strings).map(
            lambda t: f"{t[0]}.{t[1]}({t[2]})"
        )
        | st.tuples(strings, st.sampled_from(["'^a*$'", "'[a-c]+'", "'.{2}'", "''"])).map(
            lambda t: f"{t[0]}.matches({t[1]})"
        )
        | st.tuples(lists, st.sampled_from(["all", "exists", "exists_one"]), ints).map(
            lambda t: f"{t[0]}.{t[1]}(x, 10 / x > {t[2]})"
        )
        | st.sampled_from(["has(m.z)", "(m.z == 1)", "(w[9] == '')", "('a' in m)", "m.exists(k, m[k] < 0)"])
    )
)


def plain(value: Any) -> Any:
    value = value.plain_value() if hasattr(value, "plain_value") else value
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return value


def compiled(expression: str) -> Program:
    try:
        return compile(expression, TYPES)
    except CelError as error:
        # As Kubernetes does, conversions of constants are computed when compiling, also where they would never run.
        if "argument: " not in error.reason:
            raise
        reject()


def ours(expression: str) -> tuple[str, Any]:
    program = compiled(expression)
    try:
        return "value", plain(program.evaluate(VARIABLES))
    except CelError:
        return "error", None


def theirs(expression: str) -> tuple[str, Any]:
    try:
        value = ENVIRONMENT.compile(expression).eval(data=VARIABLES)
    except Exception:  # whatever the binding raises, it is no value
        return "error", None
    if value.type() == oracle.Type.ERROR:
        return "error", None
    return "value", plain(value)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(bools, bools, ints, strings, lists, doubles))
def test_random_expressions_give_the_same_value(expression: str) -> None:
    try:
        ENVIRONMENT.compile(expression)
    except Exception:
        return  # deeper than the other implementation takes
    if " in [])" in expression:
        return  # Kubernetes does not even look at what might be in an empty list, the other implementation does
    assert ours(expression) == theirs(expression)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(bools, ints, lists))
def test_fast_and_exact_evaluation_agree(expression: str) -> None:
    try:
        program = compile(expression, TYPES)
    except CelError:
        reject()  # an element of an empty list takes the type of its first use, which may not fit the second
    values = tuple(VARIABLES.values())
    assert outcome(program.run, values) == outcome(lambda *given: program._run_exactly(given), values)


def outcome(run: Callable[..., tuple[Any, int]], values: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "value", plain(run(*values)[0])
    except CelError as error:
        return "error", str(error)
