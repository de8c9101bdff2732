"""Which built-in kind behaves how: its strategy, and what differs from the usual in how it is served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from homeport.apiserver.kinds.strategy import WithStatus
from homeport.apiserver.resource import Served, Strategy


@dataclass(frozen=True, slots=True)
class Behaviour:
    strategy: Strategy
    shape: Callable[[Served], None] = lambda served: None


@cache
def behaviours() -> dict[tuple[str, str], Behaviour]:
    """By group and kind. Kinds that are not listed have no rules beyond their schema."""
    return {("", "Pod"): Behaviour(WithStatus(), _graceful)}


def _graceful(served: Served) -> None:
    served.graceful = True
    served.returns_deleted = True
