"""What a call may cost at most, judged by the sizes its arguments can have.

The figures are an API: they decide which rules a CustomResourceDefinition may have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from homeport.machinery.cel.cost.bounds import MAX, ONE, UNKNOWN, Bounds, fixed
from homeport.machinery.cel.cost.price import LIST_BASE
from homeport.machinery.cel.parse.syntax import Call, Literal, Node

_TENTH: Final = 0.1
_PATTERN: Final = 0.25
_FORMAT_PATTERN: Final = 128


class Sizes(Protocol):
    """Who knows how big values can get."""

    def size(self, node: Node) -> Bounds: ...

    def element_size(self, node: Node) -> Bounds | None:
        """Of the items of a list that are strings or bytes; None for other lists."""


class CallCost(NamedTuple):
    cost: Bounds
    result: Bounds | None = None


Estimate = Callable[[Call, Sizes], CallCost]


def _walk(factor: float, index: int = 0, *, sized: bool = False) -> Estimate:
    """One pass over an argument, whose size the result may have as well."""

    def cost(call: Call, sizes: Sizes) -> CallCost:
        size = sizes.size(call.operands[index])
        return CallCost(size.scaled(factor), size if sized else None)

    return cost


def _flat(call: Call, sizes: Sizes) -> CallCost:
    return CallCost(ONE)


def _visit_items(call: Call, sizes: Sizes) -> CallCost:
    """Functions that look at every item of a list, or search in a string."""
    target = call.operands[0]
    size = sizes.size(target)
    if target.type.kind == "list" or call.function == "includes":
        element = sizes.element_size(target)
        each = ONE if element is None else ONE.plus(element.scaled(_TENTH))
        return CallCost(size.times(each))
    return CallCost(size.scaled(_TENTH))


def _replace(call: Call, sizes: Sizes) -> CallCost:
    text, old, new = (sizes.size(each) for each in call.operands[:3])
    most, kept_most, least, kept_least = 0, 0, 0, 0
    if old.min == 0:
        most, kept_most = min(text.max + 1, MAX), text.max
    elif new.max <= old.min:
        kept_most = text.max
    else:
        most = math.ceil(text.max / old.min)
    if old.max == 0:
        least, kept_least = min(text.min + 1, MAX), text.min
    elif old.max <= new.min:
        kept_least = text.min
    else:
        least = math.ceil(text.min / old.max)
    result = Bounds(least, most).times(new).plus(Bounds(kept_least, kept_most))
    return CallCost(text.scaled(2 * _TENTH), result)


def _split(call: Call, sizes: Sizes) -> CallCost:
    text = sizes.size(call.operands[0])
    most = text.max
    if len(call.operands) > 2:
        most = _constant(call.operands[2], most)
    return CallCost(text.scaled(2 * _TENTH), Bounds(0, most))


def _join(call: Call, sizes: Sizes) -> CallCost:
    items = sizes.size(call.operands[0])
    size = items.times(sizes.element_size(call.operands[0]) or UNKNOWN)
    if len(call.operands) > 1:
        gaps = Bounds(max(items.min - 1, 0), max(items.max - 1, 0))
        size = size.plus(sizes.size(call.operands[1]).times(gaps))
    return CallCost(size.scaled(_TENTH), size)


def _matches(call: Call, sizes: Sizes) -> CallCost:
    text, pattern = (sizes.size(each) for each in call.operands[:2])
    return CallCost(text.plus(ONE).scaled(_TENTH).times(pattern.scaled(_PATTERN)))


def _find(call: Call, sizes: Sizes) -> CallCost:
    return CallCost(_matches(call, sizes).cost, Bounds(0, sizes.size(call.operands[0]).max))


def _contains(call: Call, sizes: Sizes) -> CallCost:
    text, part = (sizes.size(each).scaled(_TENTH) for each in call.operands)
    return CallCost(text.times(part))


def _network(call: Call, sizes: Sizes) -> CallCost:
    address = Bounds(4, 16)
    cost = address.plus(address).scaled(_TENTH)
    if call.function == "containsCIDR":
        cost = cost.plus(address.scaled(_TENTH)).plus(ONE)
    if call.operands[1].type.kind == "string":
        cost = cost.plus(sizes.size(call.operands[1]).scaled(_TENTH))
    return CallCost(cost)


def _ip(call: Call, sizes: Sizes) -> CallCost:
    return CallCost(ONE) if call.target is not None else _walk(_TENTH)(call, sizes)


def _validate(call: Call, sizes: Sizes) -> CallCost:
    return CallCost(sizes.size(call.operands[1]).scaled(_TENTH).scaled(_FORMAT_PATTERN * _PATTERN))


def _allocate(factor: float, size: Bounds) -> CallCost:
    return CallCost(size.scaled(factor).plus(fixed(1 + LIST_BASE)), size)


def _constant(node: Node, otherwise: int) -> int:
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return otherwise


def _slice(call: Call, sizes: Sizes) -> CallCost:
    items, start, end = call.operands
    length = _constant(end, sizes.size(items).max) - _constant(start, 0)
    return _allocate(1, fixed(max(length, 0)))


def _range(call: Call, sizes: Sizes) -> CallCost:
    return _allocate(1, fixed(_constant(call.operands[0], MAX)))


def _reverse(call: Call, sizes: Sizes) -> CallCost:
    return _allocate(1, sizes.size(call.operands[0]))


def _flatten(call: Call, sizes: Sizes) -> CallCost:
    depth = _constant(call.operands[1], MAX) if len(call.operands) > 1 else 1
    return _allocate(depth, sizes.size(call.operands[0]))


def _pairwise(index: int, *, ordered: bool) -> Estimate:
    def cost(call: Call, sizes: Sizes) -> CallCost:
        items = call.operands[index]
        size = sizes.size(items)
        element = items.type.params[0].kind if items.type.params else "dyn"
        text = ordered and element in ("string", "bytes", "dyn")
        return _allocate(2 + (_TENTH if text else 0), size.times(size))

    return cost


def _sets(factor: int) -> Estimate:
    def cost(call: Call, sizes: Sizes) -> CallCost:
        left, right = (sizes.size(each) for each in call.operands)
        return CallCost(left.times(right).scaled(factor).plus(ONE))

    return cost


def _to_bytes(call: Call, sizes: Sizes) -> CallCost:
    if call.operands[0].type.kind not in ("string", "dyn"):
        return CallCost(ONE)
    size = sizes.size(call.operands[0])
    return CallCost(size.scaled(_TENTH), Bounds(size.min, min(size.max * 4, MAX)))


def _to_string(call: Call, sizes: Sizes) -> CallCost:
    if call.operands[0].type.kind not in ("bytes", "dyn"):
        return CallCost(ONE)
    size = sizes.size(call.operands[0])
    return CallCost(size.scaled(_TENTH), Bounds(size.min // 4, size.max))


def _quote(call: Call, sizes: Sizes) -> CallCost:
    size = sizes.size(call.operands[0])
    return CallCost(size.scaled(_TENTH), Bounds(size.min + 2, min(size.max * 2 + 2, MAX)))


def _in(call: Call, sizes: Sizes) -> CallCost:
    if call.operands[1].type.kind == "map":
        return CallCost(ONE)
    return CallCost(sizes.size(call.operands[1]).scaled(1))


def _add(call: Call, sizes: Sizes) -> CallCost:
    kinds = {overload.result.kind for overload in call.overloads}
    if not kinds & {"string", "bytes", "list"}:
        return CallCost(ONE)
    left, right = (sizes.size(each) for each in call.operands)
    total = left.plus(right)
    return CallCost(ONE if kinds == {"list"} else total.scaled(_TENTH), total)


def _compare(call: Call, sizes: Sizes) -> CallCost:
    special = {each.type.name for each in call.operands}
    if len(special) == 1 and special <= _CONSTANT_EQUALITY:
        return CallCost(ONE)
    left, right = (sizes.size(each) for each in call.operands)
    smaller = min(left.max, right.max)
    return CallCost(Bounds(1 if smaller else 0, smaller).scaled(_TENTH))


def _order(call: Call, sizes: Sizes) -> CallCost:
    kinds = {overload.args[0].kind for overload in call.overloads}
    if not kinds & {"string", "bytes"}:
        return CallCost(ONE)
    cost = _compare(call, sizes)
    return cost if kinds <= {"string", "bytes"} else CallCost(cost.cost.union(ONE))


_CONSTANT_EQUALITY: Final = frozenset(("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"))

ESTIMATES: Final[dict[str, Estimate]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _visit_items),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _walk(_TENTH, sized=True)),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _walk(_TENTH)),
    **dict.fromkeys(("format",), _walk(_TENTH)),
    **dict.fromkeys(("startsWith", "endsWith"), _walk(_TENTH, 1)),
    **dict.fromkeys(("containsIP", "containsCIDR"), _network),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("_==_", "_!=_"), _compare),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "matches": _matches,
    "contains": _contains,
    "ip": _ip,
    "ip.isCanonical": _walk(2 * _TENTH),
    "validate": _validate,
    "slice": _slice,
    "lists.range": _range,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _pairwise(0, ordered=False),
    "sort": _pairwise(0, ordered=True),
    "@sortByAssociatedKeys": _pairwise(1, ordered=True),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quote,
    "@in": _in,
    "_+_": _add,
}


def call_cost(call: Call, sizes: Sizes) -> CallCost:
    """Of the call itself; its arguments come on top."""
    return ESTIMATES.get(call.function, _flat)(call, sizes)
