"""Checks on what is written out in an expression: literals that can be judged while compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.constants import constant_value, is_conversion
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library import regex
from homeport.machinery.cel.library.formatting import CLAUSES, clauses
from homeport.machinery.cel.parse.lexer import error_at
from homeport.machinery.cel.parse.syntax import Call, ListNode, Literal, MapNode, Node
from homeport.machinery.cel.types import CelType

# function, position of the argument (the target counts as none), how to read it
_READ: Final[dict[str, tuple[int, Callable[[Any], Any]]]] = {
    "matches": (0, regex.compiled),
    "find": (0, regex.compiled),
    "findAll": (0, regex.compiled),
}


def check_literals(text: str, root: Node) -> None:
    pending: list[tuple[Node, bool]] = [(root, False)]
    while pending:
        node, exempt = pending.pop()
        if isinstance(node, Call):
            _check_argument(text, node)
            if node.function == "format":
                _check_format(text, node)
                exempt = True
        elif isinstance(node, ListNode) and not exempt:
            _check_same(text, [(item, index in node.optional) for index, item in enumerate(node.items)])
        elif isinstance(node, MapNode) and not exempt:
            _check_same(text, [(key, False) for key, _, _ in node.entries])
            _check_same(text, [(value, optional) for _, value, optional in node.entries])
        pending.extend((child, exempt) for child in node.children())


def _check_argument(text: str, node: Call) -> None:
    if is_conversion(node):
        _check_conversion(text, node)
        return
    if node.function not in _READ:
        return
    index, read = _READ[node.function]
    if node.function == "matches" and node.target is None:
        index = 1
    if len(node.args) <= index:
        return
    arg = node.args[index]
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        return
    try:
        read(arg.value)
    except EvaluationError as error:
        raise error_at(text, arg.pos, f"invalid {node.function} argument: {error.reason}") from error


def _check_conversion(text: str, node: Call) -> None:
    """Conversions of literals are computed before anything runs, so they may not fail."""
    try:
        constant_value(node)
    except EvaluationError as error:
        raise error_at(text, node.args[0].pos, f"invalid {node.function} argument: {error.reason}") from error


def _check_same(text: str, items: list[tuple[Node, bool]]) -> None:
    """Lists and maps written out must hold one type: a mix is nearly always a mistake."""
    first: CelType | None = None
    for item, optional in items:
        found = item.type
        if optional and found.is_optional:
            found = found.params[0]
        if first is None:
            first = found
        elif not _equivalent(first, found):
            raise error_at(text, item.pos, f"expected type '{first}' but found '{found}'")


def _equivalent(left: CelType, right: CelType) -> bool:
    if left.kind != right.kind or left.name != right.name or left.declared is not right.declared:
        return False
    if len(left.params) != len(right.params):
        return False
    return all(map(_equivalent, left.params, right.params))


def _check_format(text: str, node: Call) -> None:
    args = node.args[0] if len(node.args) == 1 else None
    if not isinstance(node.target, Literal) or not isinstance(args, ListNode):
        return
    used = 0
    try:
        for clause in clauses(str(node.target.value)):
            if not clause.verb:
                continue
            if used >= len(args.items):
                raise EvaluationError(f"index {used} out of range")
            _check_clause(text, clause.verb, args.items[used])
            used += 1
    except EvaluationError as error:
        raise error_at(text, node.target.pos, error.reason) from error
    if len(args.items) > used:
        raise error_at(
            text,
            node.pos,
            f"too many arguments supplied to string.format (expected {used}, got {len(args.items)})",
        )


def _check_clause(text: str, verb: str, arg: Node) -> None:
    accepted, complaint = CLAUSES[verb.lower()]
    if arg.type is not t.DYN and arg.type.kind not in accepted and not arg.type.is_dyn:
        raise error_at(text, arg.pos, f"error during formatting: {complaint}, was given {arg.type.name}")
