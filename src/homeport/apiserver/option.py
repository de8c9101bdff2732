"""Options of the registry's verbs, and what a list gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from homeport.client.errors import Cause
from homeport.machinery.apply.entry import manager_problems

VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def write_faults(field_manager: str, field_validation: str) -> list[Cause]:
    """What is wrong with the options that every write has."""
    causes = [Cause(*problem) for problem in manager_problems(field_manager)]
    if field_validation not in VALIDATIONS:
        supported = ", ".join(f'"{value}"' for value in VALIDATIONS)
        given = orjson.dumps(field_validation).decode()
        text = f"Unsupported value: {given}: supported values: {supported}"
        causes.append(Cause("FieldValueNotSupported", text, "fieldValidation"))
    return causes


@dataclass(frozen=True, slots=True)
class ListOptions:
    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    match: str = ""  # "", Exact, NotOlderThan


@dataclass(frozen=True, slots=True)
class WatchOptions:
    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    match: str = ""
    initial_events: bool | None = None
    bookmarks: bool = False
    continue_: str = ""  # of lists: refused


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""  # "", Background, Foreground, Orphan
    grace_seconds: int | None = None
    orphan_dependents: bool | None = None  # the deprecated spelling of propagation


@dataclass(frozen=True, slots=True)
class Listing:
    items: Sequence[bytes]
    revision: int
    continue_: str = ""
    remaining: int | None = None
