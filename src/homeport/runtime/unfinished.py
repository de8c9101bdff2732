"""Keys of a controller that are not finished: why, since when, and which failed last."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from homeport.client.protocol import Key
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)


class Unfinished:
    def __init__(self, clock: Clock) -> None:
        self.waits: dict[Key, Wait] = {}  # why each unfinished key is not finished
        self.failed: dict[Key, str] = {}  # keys whose last reconcile failed, and what of
        self._clock = clock
        self._since: dict[Key, float] = {}  # when each unfinished key got its present reason

    def note(self, key: Key, wait: Wait | None) -> None:
        """How a reconcile that did not fail ended. None: the key is finished."""
        self.failed.pop(key, None)
        known = self.waits.get(key)
        if wait is None:
            self._drop(key)
            if known is not None and not known.quiet:
                log.info("no longer waiting", reason=known.reason)
            return
        changed = known is None or (known.reason, known.message) != (wait.reason, wait.message)
        if changed and not wait.quiet:
            log.info("waiting", reason=wait.reason, message=wait.message, look_again_in=wait.after)
        if known is None or known.reason != wait.reason:
            self._since[key] = self._clock.monotonic()
        self.waits[key] = wait

    def seconds(self, key: Key) -> float:
        """How long a key has been unfinished for its present reason."""
        since = self._since.get(key)
        return 0.0 if since is None else self._clock.monotonic() - since

    def forget(self, lost: Callable[[Key], bool]) -> None:
        """Keys that another replica works on."""
        for key in [each for each in self.waits if lost(each)]:
            self._drop(key)
        for key in [each for each in self.failed if lost(each)]:
            del self.failed[key]

    def _drop(self, key: Key) -> None:
        self.waits.pop(key, None)
        self._since.pop(key, None)
