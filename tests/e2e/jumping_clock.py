"""A plugin for tests: the wall clock of the process jumps by a day, forth and back, once a second."""

from __future__ import annotations

import time

from homeport.runtime.clock import SystemClock
from homeport.runtime.manager import Manager

DAY = 86400.0


def install(manager: Manager) -> None:
    del manager
    began = time.monotonic()
    jumps = (0.0, DAY, -DAY, 3 * DAY)

    def now(self: SystemClock) -> float:
        return time.time() + jumps[int(time.monotonic() - began) % len(jumps)]

    SystemClock.now = now  # type: ignore[method-assign]
