"""Status that only says something else in other words is written once a second at most: nobody acts on it.

A cluster that comes up changes its mind about what it waits for many times a second. What others wait for (a flag, a
condition's status, a phase) is written at once; the rest with the next such write, or when the second is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from homeport.api.meta import Object
from homeport.client.protocol import Key
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reporting, Scope

O = TypeVar("O", bound=Object)

SECONDS = 1.0


class PacedScope(Scope[O]):
    """Says whether somebody waits for what has changed."""

    later: Wait | None = None  # when what was not written is to be

    @property
    def urgent(self) -> bool:
        """Kinds that know better override this."""
        return True


class Paced(Reporting):
    """Reporting with a pace. `pace` 0: everything is written at once."""

    pace = 0.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._stored: dict[Key, float] = {}  # when a status was last written, or first held back

    def forget(self, key: Key) -> None:
        self._stored.pop(key, None)

    async def _store(self, scope: Scope[Any]) -> None:
        if self.pace and isinstance(scope, PacedScope) and scope.status_patch():
            now = self.clock.monotonic()
            left = self._stored.setdefault(scope.key, now) + self.pace - now
            if left > 0 and not scope.urgent:
                scope.later = Wait("StatusIsHeldBack", after=left, quiet=True)
                return
            self._stored[scope.key] = now
        await super()._store(scope)


def status_changed(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], kinds: Iterable[str]
) -> bool:
    """Whether one of these conditions has another status. One that is new and not True tells nobody anything."""
    was = {c["type"]: c["status"] for c in before}
    now = {c["type"]: c["status"] for c in after}
    news = [kind for kind in kinds if kind in now and now[kind] != was.get(kind)]
    return any(kind in was or now[kind] == "True" for kind in news)
