"""Whether a server can be reached. While it can't, one attempt to connect is made for all who ask."""

from __future__ import annotations

from collections.abc import Callable

_ALONE = 2  # so many attempts in a row fail before others are refused: the next address of a balancer may work
_FIRST_SECONDS = 1.0


class Reach:
    """After attempts that failed, requests are refused for a moment, with the last reason: whoever is the first to ask
    after that makes the next attempt. `limit` is the longest such moment; 0: nothing is refused.

    `on_return` is called when the server answers again.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._misses = 0  # since the last answer
        self._next = 0.0  # when the next attempt may be made
        self._why = ""
        self.on_return: Callable[[], None] | None = None

    def refusal(self, now: float) -> str:
        """Why no attempt is made now; '' if the caller may make one."""
        if not self._limit or self._misses < _ALONE:
            return ""
        if now < self._next:
            return self._why
        self._next = now + self._pause()  # nobody else tries meanwhile
        return ""

    def miss(self, now: float, why: str) -> None:
        self._misses += 1
        self._why = why
        self._next = now + self._pause()

    def hit(self) -> bool:
        """It answers. True: it did not before."""
        missed, self._misses = self._misses, 0
        return missed >= _ALONE

    def _pause(self) -> float:
        return min(self._limit, _FIRST_SECONDS * 2.0 ** min(max(0, self._misses - _ALONE), 16))
