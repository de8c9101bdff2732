"""What a table shows of an object: paths into it, and a few columns that are worked out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from homeport.api.meta import Unstructured
from homeport.app.tree.facts import replicas, state, version
from homeport.capi.object.cause import complaint
from homeport.capi.object.summary import conditions_of
from homeport.machinery.condition import find

MOST_COLUMNS = 24
MOST_DEPTH = 8
MOST_TEXT = 400
MOST_BYTES = 4_000


class ColumnError(ValueError):
    """A column that can't be shown."""


Reader = Callable[[Unstructured], Any]


def reader(column: Any) -> Reader:
    """`["spec", "version"]` is a path; the others, such as `@state`, are worked out."""
    if isinstance(column, str) and column.startswith("@"):
        return _worked_out(column[1:])
    if not isinstance(column, list) or not 0 < len(column) <= MOST_DEPTH or not all(isinstance(c, str) for c in column):
        raise ColumnError(f"invalid column {column!r}: expected a list of field names, or @state")
    path = tuple(column)
    return lambda obj: _short(_walk(obj, path))


def readers(columns: Any) -> list[Reader]:
    if not isinstance(columns, list) or len(columns) > MOST_COLUMNS:
        raise ColumnError(f"expected a list of at most {MOST_COLUMNS} columns")
    return [reader(each) for each in columns]


def row(obj: Unstructured, columns: Sequence[Reader]) -> list[Any]:
    """Identity and age first, then the columns."""
    metadata = obj.metadata
    return [
        obj.uid,
        obj.namespace,
        obj.name,
        metadata.get("creationTimestamp"),
        bool(metadata.get("deletionTimestamp")),
        *(read(obj) for read in columns),
    ]


def _worked_out(name: str) -> Reader:
    if name.startswith("condition/"):
        kind = name.partition("/")[2]
        return lambda obj: _condition(obj, kind)
    found = _WORKED_OUT.get(name)
    if found is None:
        raise ColumnError(f"unknown column @{name}: expected one of {', '.join('@' + each for each in _WORKED_OUT)}")
    return found


def _state(obj: Unstructured) -> str:
    return state(obj, conditions_of(obj))


def _problem(obj: Unstructured) -> str:
    said = complaint(obj)
    return "" if said is None else said.message[:MOST_TEXT]


_WORKED_OUT: dict[str, Reader] = {"state": _state, "version": version, "replicas": replicas, "problem": _problem}


def _condition(obj: Unstructured, kind: str) -> Any:
    found = find(conditions_of(obj), kind)
    return None if found is None else [found.get("status"), found.get("reason"), _short(found.get("message"))]


def _walk(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _short(value: Any) -> Any:
    """Cells hold no whole objects: 10,000 of them are too much for a browser."""
    if isinstance(value, str):
        return value[:MOST_TEXT]
    if isinstance(value, dict | list) and len(orjson.dumps(value)) > MOST_BYTES:
        return f"{len(value)} entries, too large for a table"
    return value
