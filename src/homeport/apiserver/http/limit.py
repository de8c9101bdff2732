"""How many requests may be under way at once. Watches and other long ones don't count."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.apiserver.request import User
from homeport.client.errors import TooManyRequests

READING = frozenset(("get", "list", "watch"))
_MASTERS = "system:masters"


class InFlight:
    """Counts by kind. Raises TooManyRequests above the limit, except for administrators, who must get in to help."""

    def __init__(self, *, mutating: int = 200, reading: int = 400) -> None:
        self._limits = {"mutating": mutating, "readOnly": reading}
        self._now = {"mutating": 0, "readOnly": 0}

    def enter(self, verb: str, user: User) -> str:
        """Takes a place; give the result back to `leave`."""
        kind = "readOnly" if verb in READING else "mutating"
        if self._now[kind] >= self._limits[kind] and _MASTERS not in user.groups:
            raise TooManyRequests("Too many requests, please try again later.", retry_after=1)
        self._now[kind] += 1
        return kind

    def leave(self, kind: str) -> None:
        self._now[kind] -= 1

    @property
    def total(self) -> int:
        return self._now["mutating"] + self._now["readOnly"]

    def read(self) -> Mapping[str, float]:
        return dict(self._now)
