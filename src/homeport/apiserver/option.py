"""Options of the registry's verbs, and what a list gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
