"""Spares an account at a vendor whose credentials were refused: accounts are locked after a few wrong passwords."""

from __future__ import annotations

from homeport.infra.error import Denied
from homeport.runtime.clock import Clock

_FIRST_SECONDS, _LONGEST_SECONDS = 10.0, 300.0


class Account:
    """`check` before each request, then `refuse` or `accept`. One for each endpoint and credentials."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: tuple[float, Denied] | None = None  # until when no request is sent, and why
        self._refusals = 0

    def check(self) -> None:
        """Raises the last refusal while it is too early to show the credentials again."""
        if self._refused is None:
            return
        until, last = self._refused
        left = until - self._clock.monotonic()
        if left > 0:
            raise _again(last, left)
        self._refused = None

    def refuse(self, error: Denied) -> Denied:
        pause = min(_FIRST_SECONDS * 2 ** min(self._refusals, 10), _LONGEST_SECONDS)
        self._refusals += 1
        self._refused = (self._clock.monotonic() + pause, error)
        return _again(error, pause)

    def accept(self) -> None:
        self._refusals = 0


def _again(error: Denied, after: float) -> Denied:
    made = Denied(error.message, code=error.code, after=after)
    made.origin = error.origin
    return made
