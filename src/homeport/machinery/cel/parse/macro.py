"""Macros: calls that bind variables, rewritten while parsing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from homeport.machinery.cel.parse.syntax import Call, Fold, Ident, Node, Select

Fail = Callable[[int, str], Exception]

_ONE_VARIABLE: Final = {
    ("all", 2): "all",
    ("exists", 2): "exists",
    ("exists_one", 2): "exists_one",
    ("existsOne", 2): "exists_one",
    ("map", 2): "map",
    ("map", 3): "map",
    ("filter", 2): "filter",
    ("optMap", 2): "optMap",
    ("optFlatMap", 2): "optFlatMap",
}
_TWO_VARIABLES: Final = {
    ("all", 3): "all",
    ("exists", 3): "exists",
    ("exists_one", 3): "exists_one",
    ("existsOne", 3): "exists_one",
    ("transformList", 3): "transformList",
    ("transformList", 4): "transformList",
    ("transformMap", 3): "transformMap",
    ("transformMap", 4): "transformMap",
    ("transformMapEntry", 3): "transformMapEntry",
    ("transformMapEntry", 4): "transformMapEntry",
}
_SORT_INPUT: Final = "@sortBy_input"


def expand(call: Call, fail: Fail, *, bind: bool) -> Node:
    """The node a call stands for: a fold when it is a macro, itself otherwise."""
    if call.target is None:
        return _has(call, fail) if call.function == "has" and len(call.args) == 1 else call
    if bind and isinstance(call.target, Ident) and call.target.name == "cel" and call.function == "bind":
        return _bind(call, fail)
    key = (call.function, len(call.args))
    if key in _ONE_VARIABLE:
        return _fold(call, _ONE_VARIABLE[key], 1, fail)
    if key in _TWO_VARIABLES:
        return _fold(call, _TWO_VARIABLES[key], 2, fail)
    if key == ("sortBy", 2):
        return _sort_by(call, fail)
    return call


def _has(call: Call, fail: Fail) -> Node:
    arg = call.args[0]
    if not isinstance(arg, Select) or arg.test:
        raise fail(arg.pos, "invalid argument to has() macro")
    return Select(call.pos, arg.operand, arg.field, test=True)


def _bind(call: Call, fail: Fail) -> Node:
    if len(call.args) != 3:
        return call
    variables = _names(call.args[:1], fail)
    return Fold(call.pos, "bind", call.args[1], variables, None, call.args[2])


def _fold(call: Call, kind: str, count: int, fail: Fail) -> Node:
    assert call.target is not None
    variables = _names(call.args[:count], fail)
    rest = call.args[count:]
    condition = rest[0] if len(rest) == 2 else None
    if kind == "filter":
        condition, rest = rest[0], [Ident(call.args[0].pos, variables[0])]
    return Fold(call.pos, kind, call.target, variables, condition, rest[-1])


def _sort_by(call: Call, fail: Fail) -> Node:
    """`list.sortBy(x, key)`: bind the list, map it to its keys, sort one by the other."""
    assert call.target is not None
    variables = _names(call.args[:1], fail)
    keys = Fold(call.pos, "map", Ident(call.pos, _SORT_INPUT), variables, None, call.args[1])
    ordered = Call(call.pos, "@sortByAssociatedKeys", Ident(call.pos, _SORT_INPUT), [keys])
    return Fold(call.pos, "bind", call.target, (_SORT_INPUT,), None, ordered)


def _names(nodes: list[Node], fail: Fail) -> tuple[str, ...]:
    names: list[str] = []
    for node in nodes:
        if not isinstance(node, Ident) or node.name.startswith("."):
            raise fail(node.pos, "argument must be a simple name")
        if node.name == "__result__":
            raise fail(node.pos, "iteration variable overwrites accumulator variable")
        if node.name in names:
            raise fail(node.pos, f"duplicate variable name: {node.name}")
        names.append(node.name)
    return tuple(names)
