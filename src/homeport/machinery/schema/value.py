"""What JSON values are to a schema: their types and ranges, and which old value a new one continues."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.schema.node import Schema

INT32: Final = (-(2**31), 2**31 - 1)
INT64: Final = (-(2**63), 2**63 - 1)
FLOAT32_MAX: Final = 3.4028234663852886e38
EXACT_MAX: Final = 2**53 - 1  # beyond it a float is not trusted to be a whole number


class _Unrelated:
    """Stands for `there is no old value that this one continues`."""


UNRELATED: Final = _Unrelated()


def types_of(schema: Schema) -> tuple[str, ...]:
    if schema.int_or_string:
        return ("integer", "string")
    if schema.format == "quantity":
        return ("string", "number")
    return (schema.type,) if schema.type else ()


def kind_of(value: object) -> tuple[str, str]:
    """JSON type and format of a value."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return ("integer", "int64") if INT64[0] <= value <= INT64[1] else ("number", "float64")
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def same(a: object, b: object) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(k in b and same(value, b[k]) for k, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def is_whole(value: float) -> bool:
    return float(value).is_integer() and abs(value) <= EXACT_MAX


def in_range(value: float, type_: str, format_: str) -> bool:
    if type_ == "integer":
        low, high = INT32 if format_ == "int32" else INT64
        return low <= value <= high and value == int(value)
    return not (format_ == "float" and abs(value) > FLOAT32_MAX)


def is_multiple(value: float, factor: float) -> bool:
    if factor <= 0:
        return False
    if isinstance(value, int) and float(factor).is_integer():
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return abs(quotient) <= EXACT_MAX and abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))


def unchanged(schema: Schema | None, old: object, new: object) -> bool:
    """Equal, where the order of a list with keys does not count and items without their keys equal nothing."""
    if isinstance(old, dict) and isinstance(new, dict):
        if len(old) != len(new):
            return False
        return all(k in old and unchanged(schema.child(k) if schema else None, old[k], v) for k, v in new.items())
    if isinstance(old, list) and isinstance(new, list) and schema is not None and schema.list_type == "map":
        continued = correlate(schema, new, old) or []
        return len(old) == len(new) and all(
            before is not UNRELATED and unchanged(schema.items, before, item)
            for before, item in zip(continued, new, strict=True)
        )
    return same(old, new)


def correlate(schema: Schema, value: list[Any], old: object) -> list[Any] | None:
    """For each item of a list with keys, the item of the old list that has the same keys."""
    if schema.list_type != "map" or not isinstance(old, list):
        return None

    def keys(item: Any) -> Any:
        if not isinstance(item, dict) or not all(key in item for key in schema.list_keys):
            return None
        return tuple(repr(item[key]) for key in schema.list_keys)

    by_keys = {keys(item): item for item in reversed(old)}
    by_keys.pop(None, None)
    return [by_keys.get(keys(item), UNRELATED) for item in value]
