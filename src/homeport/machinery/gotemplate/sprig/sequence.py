"""Lists. None of these changes the list that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.sprig.conversion import to_int64
from homeport.machinery.gotemplate.value import Lists, NilList, same, truth, type_of

_MOST_COMPARED: Final = 1000  # items of a list that is compared with each item of another


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise CallError(f"a list is needed, not {type_of(value)}")
    return value


def chunk(size: int, value: object) -> Lists:
    items = _list(value)
    if size <= 0:
        raise CallError(f"a list can't be parted into pieces of {size}")
    return Lists([list(items[i : i + size]) for i in range(0, len(items), size)])


def unique(value: object) -> list[Any]:
    found: list[Any] = []
    plain: set[tuple[str, Any]] = set()
    for item in _list(value):
        if isinstance(item, str | int | float | bool):
            mark = (type_of(item), item)
            if mark in plain:
                continue
            plain.add(mark)
        elif _among(item, found):
            continue
        found.append(item)
    return found


def _among(item: Any, items: list[Any] | tuple[Any, ...]) -> bool:
    if len(items) > _MOST_COMPARED and isinstance(item, dict | list):
        raise CallError(f"more than {_MOST_COMPARED} lists or maps can't be compared with each other")
    return any(same(item, each) for each in items)


def without(value: object, *omitted: object) -> list[Any]:
    return [item for item in _list(value) if not _among(item, omitted)]


def has(needle: object, value: object) -> bool:
    return value is not None and _among(needle, _list(value))


def part(value: object, *bounds: object) -> Any:
    items = _list(value)
    if not items:
        return None
    start = to_int64(bounds[0]) if bounds else 0
    end = to_int64(bounds[1]) if len(bounds) > 1 else len(items)
    if not 0 <= start <= end <= len(items):
        raise CallError(f"the part from {start} to {end} is outside of a list with {len(items)} items")
    return type(items)(items[start:end])


def concat(*values: object) -> list[Any]:
    return [item for value in values for item in _list(value)] or NilList()


def _both(table: dict[str, tuple[str, Callable[..., Any]]]) -> dict[str, tuple[str, Callable[..., Any]]]:
    """With the twins that sprig calls must...: here, everything that goes wrong is an error anyway."""
    return table | {f"must{name[0].upper()}{name[1:]}": entry for name, entry in table.items()}


FUNCTIONS: Final = functions(
    {
        "tuple": ("...any", lambda *values: list(values)),
        "list": ("...any", lambda *values: list(values)),
        "concat": ("...any", concat),
        **_both(
            {
                "append": ("any any", lambda value, item: [*_list(value), item]),
                "push": ("any any", lambda value, item: [*_list(value), item]),
                "prepend": ("any any", lambda value, item: [item, *_list(value)]),
                "first": ("any", lambda value: next(iter(_list(value)), None)),
                "last": ("any", lambda value: next(iter(_list(value)[-1:]), None)),
                "rest": ("any", lambda value: list(_list(value)[1:]) if value else NilList(_list(value))),
                "initial": ("any", lambda value: list(_list(value)[:-1]) if value else NilList(_list(value))),
                "reverse": ("any", lambda value: list(reversed(_list(value)))),
                "compact": ("any", lambda value: [item for item in _list(value) if truth(item)]),
                "uniq": ("any", unique),
                "without": ("any ...any", without),
                "has": ("any any", has),
                "slice": ("any ...any", part),
                "chunk": ("int any", chunk),
            }
        ),
    }
)
