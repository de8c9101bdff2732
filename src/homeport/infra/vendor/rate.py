"""How many requests a second an endpoint is sent: more while it answers quickly, fewer when it asks for that."""

from __future__ import annotations

import asyncio

from homeport.runtime.clock import Clock

_QUICK_SECONDS = 0.5
_GROWTH = 0.2  # requests a second for each quick answer: from 50 to 200 in some seconds
_GROWTH_AFTER_THROTTLING = 0.02
_MOST = 4.0  # of the first rate
_LEAST = 0.1


class Rate:
    """A token bucket whose rate follows the endpoint.

    A small Prism Central allows fewer requests than the usual rate, and a large one many more. Only requests that had
    to wait let the rate grow: those are the ones that a higher rate helps.
    """

    def __init__(self, clock: Clock, per_second: float, burst: int, most: float | None = None) -> None:
        self._clock = clock
        self._first = self.per_second = per_second
        self._most = per_second * _MOST if most is None else most
        self._burst = self._tokens = float(burst)
        self._filled = clock.monotonic()
        self._growth = _GROWTH

    async def take(self) -> bool:
        """Returns when a request may be sent. True: it had to wait for others."""
        waited = False
        while True:
            now = self._clock.monotonic()
            if now > self._filled:
                self._tokens = min(self._burst, self._tokens + (now - self._filled) * self.per_second)
                self._filled = now
            if self._tokens >= 1.0:
                self._tokens -= 1.0
                return waited
            waited = True
            missing = (1.0 - self._tokens) / self.per_second
            # A little more than that: what is too short to be counted would be waited for without end.
            await asyncio.sleep(max(self._filled - now, 0.0) + missing + 0.001)

    def answered(self, seconds: float, *, waited: bool) -> None:
        if waited and seconds < _QUICK_SECONDS:
            self.per_second = min(self.per_second + self._growth, max(self._most, self.per_second))

    def throttled(self, after: float) -> None:
        """Nothing is sent for so many seconds. Of several requests that were throttled at once, the first one halves
        the rate."""
        now = self._clock.monotonic()
        if now >= self._filled:
            self.per_second = max(self.per_second / 2, self._first * _LEAST)
        self._growth = _GROWTH_AFTER_THROTTLING
        self._tokens = 0.0
        self._filled = max(self._filled, now + after)
