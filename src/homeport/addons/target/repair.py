"""How often objects are repaired: somebody who changes one again and again is not answered without end."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from homeport.runtime.clock import Clock

_FREE = 5  # repairs of one object within the window that are done at once
_WINDOW_SECONDS = 600.0


class Repairs:
    """Of one add-on. The memory is that of the process: a restart repairs at once again, which is harmless."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[Hashable, deque[float]] = {}

    def begin(self, identity: Hashable) -> str:
        """Why the object must not be repaired now; '' if it may, which is then counted."""
        now = self._clock.now()
        times = self._times.setdefault(identity, deque(maxlen=_FREE))
        while times and now - times[0] >= _WINDOW_SECONDS:
            times.popleft()
        if len(times) == _FREE and now - times[-1] < _WINDOW_SECONDS:
            left = times[0] + _WINDOW_SECONDS - now
            return (
                f"it was repaired {_FREE} times within {_WINDOW_SECONDS / 60:.0f} minutes, and something else changes "
                f"it again: stop that, or list the fields in spec.driftIgnore. The next repair is in {left:.0f} s"
            )
        times.append(now)
        return ""
