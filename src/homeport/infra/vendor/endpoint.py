"""Good manners towards a vendor's endpoint: a rate limit and a circuit breaker, shared by all who use the endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from homeport.infra.error import Denied, Throttled, Unreachable
from homeport.infra.vendor.rate import Rate
from homeport.runtime.clock import Clock


class Endpoint:
    """`async with endpoint.turn():` around each request.

    After `patience` failures in a row the breaker opens: for `rest` seconds (doubling up to `longest`) requests fail at
    once, then one is let through to try. Being throttled makes everybody wait, and from then on send fewer requests.

    `doubted` is called at the first failure in a row and at each refusal: what one request found out concerns all who
    use the endpoint.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        per_second: float = 50.0,
        burst: int = 100,
        most: float | None = None,
        parallel: int = 32,
        patience: int = 5,
        rest: float = 2.0,
        longest: float = 60.0,
    ) -> None:
        self.name = name
        self.clock = clock
        self.rate = Rate(clock, per_second, burst, most)
        self._parallel = asyncio.Semaphore(parallel)
        self._patience = patience
        self._rest = rest
        self._longest = longest
        self._failures = 0
        self._closed_until = 0.0
        self._trying = False
        self._last = self._origin = ""
        self.doubted: list[Callable[[], None]] = []

    @property
    def open(self) -> bool:
        """Whether no connection succeeds at the moment."""
        return self._failures >= self._patience and (self._trying or self.clock.monotonic() < self._closed_until)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Raises Unreachable at once while the endpoint is known to be down."""
        self._refuse_if_open()
        trying = self._failures >= self._patience
        self._trying = trying
        try:
            async with self._parallel:
                waited = await self.rate.take()
                sent = self.clock.monotonic()
                yield
        except Throttled as slow:
            self.rate.throttled(slow.after)
            raise
        except Unreachable as down:
            if not down.own:
                self._fail(down)
            raise
        except Denied:
            self._succeed()  # it answers
            self._doubt()
            raise
        else:
            self.rate.answered(self.clock.monotonic() - sent, waited=waited)
            self._succeed()
        finally:
            if trying:
                self._trying = False

    def _refuse_if_open(self) -> None:
        if self.open:
            error = Unreachable(self._last)  # the same message each time: conditions don't change every second
            error.origin = self._origin
            raise error

    def _fail(self, error: Unreachable) -> None:
        self._failures += 1
        self._last, self._origin = error.message, error.origin
        if self._failures == 1:
            self._doubt()
        over = self._failures - self._patience
        if over >= 0:
            pause = min(self._rest * 2 ** min(over, 10), self._longest)
            self._closed_until = self.clock.monotonic() + pause

    def _succeed(self) -> None:
        self._failures = 0
        self._last = ""

    def _doubt(self) -> None:
        for each in list(self.doubted):
            each()
