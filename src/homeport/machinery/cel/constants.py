"""Values that are known while compiling."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.cel.parse.syntax import Call, ListNode, Literal, MapNode, Node

_CONVERSIONS: Final = frozenset(("int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp"))


def is_conversion(node: Node) -> bool:
    """A literal that is written with a conversion, such as duration('1h')."""
    while isinstance(node, Call) and node.function in _CONVERSIONS and len(node.overloads) == 1:
        node = node.args[0]
        if isinstance(node, Literal):
            return True
    return False


def is_constant(node: Node) -> bool:
    """Whether the value costs nothing, as it is computed before anything runs."""
    if isinstance(node, ListNode):
        return not node.optional and all(map(is_constant, node.items))
    if isinstance(node, MapNode):
        return not any(optional for *_, optional in node.entries) and all(map(is_constant, node.children()))
    return isinstance(node, Literal) or is_conversion(node)


def constant_value(node: Node) -> Any:
    """Of a literal or a conversion of one; raises EvaluationError when there is none."""
    if isinstance(node, Literal):
        return node.value
    assert isinstance(node, Call)
    return node.overloads[0].impl(constant_value(node.args[0]))
