"""Pacing of status writes: a status in which only wording changed need not be written at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.client.protocol import Key

# A timer may fire this much early, by its own resolution or by rounding. To wait for the rest would be to wait in vain:
# a virtual clock does not move for so little.
_DUE_SECONDS = 0.001
# Statuses that nobody acts on, written per second by one controller. When thousands of objects change at once, each of
# them reports its wording less often: what every object costs stays the same.
_WRITES_PER_SECOND = 10.0
_LONGEST_CROWDED_SECONDS = 60.0  # what lasts is reported in the end, however many objects wait
# While a write takes long, everything else does, too, and what is waited for changes in many small steps. The pause
# grows with it, so that an object that takes ten times as long does not report ten times as often.
_PAUSE_PER_WRITE = 10.0
_LONGEST_SECONDS = 10.0
_WEIGHT = 0.2  # of the last write in the mean


@dataclass(frozen=True, slots=True)
class Pace:
    """At most one write of a status that nobody acts on in this many seconds, and longer while many objects of the kind
    have such a change. 0: every change is written at once.

    `settle`: the time counts from the first change that was not written, so that what lasts no longer is never
    written. Otherwise it counts from the last write.
    """

    seconds: float = 0.0
    settle: bool = False


class Pacer:
    """Decides when a status is written. Remembers one time per object."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._since: dict[Key, float] = {}
        self._held: set[Key] = set()  # have a change that is not written yet
        self._write_seconds = 0.0  # the mean of late

    def delay(self, key: Key, now: float, *, urgent: bool, changed: bool) -> float:
        """Seconds until the status may be written; 0 when it is to be written now."""
        if not self._pace.seconds:
            return 0.0
        if not changed:
            self._held.discard(key)
            if self._pace.settle:
                self._since.pop(key, None)
            return 0.0
        slow = min(self._write_seconds * _PAUSE_PER_WRITE, _LONGEST_SECONDS)
        crowded = min(len(self._held) / _WRITES_PER_SECOND, _LONGEST_CROWDED_SECONDS)
        pause = max(self._pace.seconds, crowded, slow)
        left = self._since.setdefault(key, now) + pause - now
        if left > _DUE_SECONDS and not urgent:
            self._held.add(key)
            return left
        self._held.discard(key)
        if self._pace.settle:
            del self._since[key]
        else:
            self._since[key] = now
        return 0.0

    def took(self, seconds: float) -> None:
        """How long a write took, of whatever object."""
        self._write_seconds += _WEIGHT * (seconds - self._write_seconds)

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)
        self._held.discard(key)


def status_changed(
    before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], kinds: Iterable[str]
) -> bool:
    """Whether one of these conditions has another status. A new condition counts only if it is True."""
    was = {c["type"]: c["status"] for c in before}
    now = {c["type"]: c["status"] for c in after}
    changed = [kind for kind in kinds if kind in now and now[kind] != was.get(kind)]
    return any(kind in was or now[kind] == "True" for kind in changed)
