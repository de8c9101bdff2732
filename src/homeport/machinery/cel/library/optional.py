"""Optional values."""

from __future__ import annotations

from typing import Any

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError, no_such_overload
from homeport.machinery.cel.library.clock import MIN_SECONDS, SECOND
from homeport.machinery.cel.library.registry import A, Function, function, method
from homeport.machinery.cel.values import NONE, Duration, Optional, Timestamp, optional_select


def is_zero(value: object) -> bool:
    """Whether a value is the empty one of its type."""
    if value is None or value is False:
        return True
    if isinstance(value, Duration):
        return value.ns == 0
    if isinstance(value, Timestamp):
        return value.ns == MIN_SECONDS * SECOND
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value == 0
    if isinstance(value, Optional):
        return not value.present
    return isinstance(value, (str, bytes, list, dict)) and not value


def of_non_zero(value: object) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def optional_or(left: object, right: object) -> Any:
    if not isinstance(left, Optional):
        raise no_such_overload()
    return left if left.present else right


def or_value(left: object, right: object) -> Any:
    if not isinstance(left, Optional):
        raise no_such_overload()
    return left.value if left.present else right


def unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if not isinstance(item, Optional):
            raise EvaluationError("a value of the list is not optional")
    return [item.value for item in items if item.present]


def functions() -> list[Function]:
    maybe, items, optionals = t.optional_of(A), t.list_of(A), t.list_of(t.optional_of(A))
    return [
        function("optional.of", "optional_of", (A,), maybe, Optional),
        function("optional.ofNonZeroValue", "optional_ofNonZeroValue", (A,), maybe, of_non_zero),
        function("optional.none", "optional_none", (), maybe, lambda: NONE),
        function("optional.unwrap", "optional_unwrap", (optionals,), items, unwrap),
        function("_?._", "select_optional_field", (t.DYN, t.STRING), maybe, optional_select),
        method("value", "optional_value", (maybe,), A, lambda o: o.value),
        method("hasValue", "optional_hasValue", (maybe,), t.BOOL, lambda o: o.present),
        method("or", "optional_or_optional", (maybe, maybe), maybe, optional_or),
        method("orValue", "optional_orValue_value", (maybe, A), A, or_value),
        method("unwrapOpt", "optional_unwrapOpt", (optionals,), items, unwrap),
        method("first", "list_first", (items,), maybe, lambda l: Optional(l[0]) if l else NONE),
        method("last", "list_last", (items,), maybe, lambda l: Optional(l[-1]) if l else NONE),
    ]
