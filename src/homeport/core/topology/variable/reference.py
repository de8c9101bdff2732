"""References to variables: `name`, `name.field`, `name[0].field`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_STEP = re.compile(r"(?P<name>[^\[\]]*)(?:\[(?P<index>\+?[0-9]{1,9})\])?")


class BadReference(ValueError):
    """A reference that can't be read, or that leads nowhere."""


def variable_of(reference: str) -> str:
    """The name of the variable that a reference begins with."""
    return re.split(r"[.\[]", reference, maxsplit=1)[0]


def check_reference(reference: str) -> None:
    """Raises BadReference if it is not valid."""
    _steps(reference)


def value_of(reference: str, values: Mapping[str, Any]) -> Any:
    """Raises BadReference, which says where the way ends."""
    at: Any = values
    walked = ""
    for name, index in _steps(reference):
        if not isinstance(at, Mapping) or name not in at:
            where = f"{walked} has no field {name!r}" if walked else f"variable {name!r} is not set"
            raise BadReference(f"{reference!r} leads nowhere: {where}")
        at = at[name]
        walked = f"{walked}.{name}" if walked else name
        if index is None:
            continue
        if not isinstance(at, list):
            raise BadReference(f"{reference!r} can't be resolved: {walked} is not a list")
        if index >= len(at):
            raise BadReference(f"{reference!r} can't be resolved: {walked} has {len(at)} items")
        at = at[index]
        walked = f"{walked}[{index}]"
    return at


def _steps(reference: str) -> list[tuple[str, int | None]]:
    steps: list[tuple[str, int | None]] = []
    for part in reference.split("."):
        found = _STEP.fullmatch(part)
        if found is None or not found["name"]:
            raise BadReference(f"{reference!r} can't be read at {part!r}: expected name, name.field or name[0].field")
        steps.append((found["name"], int(found["index"]) if found["index"] else None))
    return steps
