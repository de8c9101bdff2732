"""A timer that can be asked for again: the earliest moment counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def after(self, seconds: float) -> None:
        """Rings once, `seconds` from now at the latest."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._ring_now)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring_now(self) -> None:
        self._timer = None
        self._ring()
