"""Answers that are good for a while: a preflight runs with every reconcile of a cluster, and they seldom change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from homeport.runtime.clock import Clock

T = TypeVar("T")


class Recent:
    """Only good answers are kept: what is missing or denied is asked for every time."""

    def __init__(self, clock: Clock, seconds: float = 300.0) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    def forget(self) -> None:
        self._kept.clear()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T | None]]) -> T | None:
        now = self._clock.monotonic()
        at, value = self._kept.get(key, (float("-inf"), None))
        if now - at < self._seconds:
            found: T = value
            return found
        answer = await read()
        if answer is None:
            self._kept.pop(key, None)
        else:
            self._kept[key] = (now, answer)
        return answer
