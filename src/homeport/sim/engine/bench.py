"""What a simulator lets people look at and change while it runs. A simulator without it runs as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from homeport.sim.engine.admin import Admin


class Table(msgspec.Struct, frozen=True):
    """Some entities of a world, for people."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@runtime_checkable
class Bench(Protocol):
    @property
    def admin(self) -> Admin:
        """Faults, journal and consoles."""

    def tables(self) -> list[Table]:
        """What its world has, besides machines."""
