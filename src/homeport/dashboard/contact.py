"""Whether the API server answers: if not, what a page shows is old, and the page has to say since when."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from homeport.client.errors import ApiError, Internal, Timeout, Unavailable

LATE_SECONDS = 5.0  # an answer that takes longer counts as none until it comes
_NO_ANSWER = (Unavailable, Timeout, Internal)


@dataclass(frozen=True, slots=True)
class Stale:
    """What is shown is from this time, in seconds since 1970."""

    since: float
    why: str


class Contact:
    """Judges by questions that are asked regularly anyway: a connection that hangs delivers no events, which looks like
    a cluster at rest."""

    def __init__(self) -> None:
        self._answered = time.time()
        self._asked = -math.inf  # when the last question was asked that was answered, by the monotonic clock
        self.stale: Stale | None = None

    @contextmanager
    def question(self) -> Iterator[None]:
        """Around a request."""
        asked = time.monotonic()
        late = asyncio.get_running_loop().call_later(LATE_SECONDS, self._lose, asked, "the API server does not answer")
        try:
            yield
        except _NO_ANSWER as error:
            self._lose(asked, str(error))
            raise
        except ApiError:
            self._regain(asked)
            raise
        else:
            self._regain(asked)
        finally:
            late.cancel()

    def _lose(self, asked: float, why: str) -> None:
        if asked >= self._asked:  # a later question may have been answered before
            self.stale = Stale(self._answered if self.stale is None else self.stale.since, why)

    def _regain(self, asked: float) -> None:
        self._asked = max(asked, self._asked)
        self._answered = time.time()
        self.stale = None
