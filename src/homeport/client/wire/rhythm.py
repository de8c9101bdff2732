"""When a watch that is renewed often ends and begins again: together with those of other servers.

A process that follows a thousand servers renews as many watches twice a minute. One by one, each renewal finds code and
data of the one before gone from the processor's caches, and costs two to three times as much as in a row.
"""

from __future__ import annotations

import random
from collections.abc import Callable

# All at the same moment would keep everything else waiting: with a thousand servers, these are turns of a tenth of a
# second.
GROUPS = 7
# Shorter watches would count as ended too soon.
LEAST_SECONDS = 6
# An answer takes its time: so long after a whole second still counts as in time.
_LATE_SECONDS = 0.25


class Rhythm:
    """Of one watch, which is in one of a few groups by chance. `longest`: no watch lasts longer, in whole seconds."""

    def __init__(self, longest: int, clock: Callable[[], float]) -> None:
        self._longest = longest
        self._every = max(1, longest * 14 // 15)
        self._offset = random.randrange(GROUPS) * self._every // GROUPS  # noqa: S311 - not for secrets
        self._clock = clock

    def seconds(self) -> int:
        """How long a watch that begins now lasts: until the next turn of its group, or the one after the next."""
        left = round(self._every - self._since_turn() % self._every)
        if left < LEAST_SECONDS:
            left += self._every // 2
        return min(max(1, left), self._longest)

    def pause(self) -> float:
        """How long to wait with the next one, less than a second: servers take whole seconds alone. After it, the watch
        ends with the others of its group, and there is nothing to wait for."""
        late = self._since_turn() % 1.0
        return 0.0 if late < _LATE_SECONDS else 1.0 - late

    def _since_turn(self) -> float:
        return self._clock() - self._offset
