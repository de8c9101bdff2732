"""What evaluating costs, in the units of Kubernetes: an access or a simple call is 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from homeport.machinery.cel.compare import size_of
from homeport.machinery.cel.errors import CostLimitExceeded
from homeport.machinery.cel.library.named import NamedFormat
from homeport.machinery.cel.values import ObjectValue, iterate_pairs

PER_CALL_LIMIT: Final = 1_000_000
TOTAL_BUDGET: Final = 10_000_000
LIST_BASE: Final = 10
MAP_BASE: Final = 30


def tenth(size: int) -> int:
    """A tenth, rounded up: what walking over a string costs."""
    return (size + 9) // 10


def fifth(size: int) -> int:
    return (size + 4) // 5


def quarter(size: int) -> int:
    return (size + 3) // 4


def bounded(cost: int) -> int:
    """Stops before the work is done, where one call alone breaks the limit."""
    if cost > PER_CALL_LIMIT:
        raise CostLimitExceeded
    return cost


def walk(value: object) -> int:
    """The cost of visiting a value with all that is in it."""
    if isinstance(value, (str, bytes)):
        return len(value) // 10
    if isinstance(value, list):
        return sum(map(walk, value))
    if isinstance(value, (dict, ObjectValue)):
        return sum(walk(key) + walk(each) for key, each in iterate_pairs(value))
    return 1


def equality(left: object, right: object) -> int:
    return tenth(min(size_of(left), size_of(right)))


def concatenation(left: Any, right: Any) -> int:
    return bounded(tenth(len(left) + len(right)))


def _first(value: Any, *rest: Any) -> int:
    return bounded(tenth(size_of(value)))


def _first_twice(value: Any, *rest: Any) -> int:
    return bounded(fifth(size_of(value)))


def _second(value: Any, other: Any) -> int:
    return tenth(size_of(other))


def _walk_first(value: Any, *rest: Any) -> int:
    return bounded(walk(value))


def search(text: object, part: object) -> int:
    return bounded(tenth(size_of(text)) * tenth(size_of(part)))


def pattern(text: object, expression: object, *rest: object) -> int:
    return bounded(tenth(1 + size_of(text)) * quarter(size_of(expression)))


def _join(items: Any, separator: str = "") -> int:
    size = sum(size_of(item) for item in items) + len(separator) * max(len(items) - 1, 0)
    return bounded(fifth(size))


def _validate(format_: Any, text: Any) -> int:
    size = format_.pattern_size if isinstance(format_, NamedFormat) else 1
    return bounded(tenth(1 + size_of(text)) * quarter(size))


def _network(cidr: Any, other: Any) -> int:
    own = size_of(cidr)
    return tenth(2 * own) + tenth(own) + 1 + (tenth(len(other)) if isinstance(other, str) else 0)


def _sets(factor: int) -> Callable[[Any, Any], int]:
    return lambda left, right: bounded(1 + factor * size_of(left) * size_of(right))


def _copy(items: Any, *rest: Any) -> int:
    return bounded(size_of(items) + 1 + LIST_BASE)


def _slice(items: Any, start: Any, end: Any) -> int:
    return bounded(max(end - start, 0) + 1 + LIST_BASE)


def _range(count: Any) -> int:
    return bounded(max(count, 0) + 1 + LIST_BASE)


def _flatten(items: Any, depth: int = 1) -> int:
    return bounded(size_of(items) * max(depth, 1) + 1 + LIST_BASE)


def _pairwise(items: Any, *rest: Any) -> int:
    size = size_of(items)
    text = bool(size) and isinstance(items[0], (str, bytes))
    return bounded(int(size * size * (2.1 if text else 2.0)) + 1 + LIST_BASE)


def _pairwise_keys(items: Any, keys: Any) -> int:
    return _pairwise(keys)


Price = Callable[..., int]

# functions that don't cost 1
PRICES: Final[dict[str, Price]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _walk_first),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "strings.quote"), _first),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first),
    **dict.fromkeys(("bytes", "format"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    **dict.fromkeys(("startsWith", "endsWith"), _second),
    **dict.fromkeys(("matches", "find", "findAll"), pattern),
    **dict.fromkeys(("containsIP", "containsCIDR"), _network),
    "contains": search,
    "join": _join,
    "validate": _validate,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "reverse": _copy,
    "slice": _slice,
    "lists.range": _range,
    "flatten": _flatten,
    "distinct": _pairwise,
    "sort": _pairwise,
    "@sortByAssociatedKeys": _pairwise_keys,
}


class Meter:
    """Adds up costs where they can't be added up in a local variable."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 1

    def charge(self, cost: int) -> bool:
        self.used += cost
        if self.used > PER_CALL_LIMIT:
            raise CostLimitExceeded
        return True
