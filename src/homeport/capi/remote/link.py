"""The way to one workload cluster: how it is, and what is known of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass

from homeport.capi.remote.workload import Remote
from homeport.client.errors import Unavailable
from homeport.client.protocol import Client
from homeport.runtime.clock import Clock

QUIET_SECONDS = 35.0  # without an answer or an event of a watch, and the cluster is probed
AGES = (QUIET_SECONDS, 50.0, 300.0)  # seconds without an answer: it is probed, and followers are notified twice
LEAST_SECONDS = 0.001


class Silence:
    """How long a cluster has not answered. `ask` is called after a while, and `notify` when that gets long.

    `heard` gives the seconds since something came from the cluster: its watches are renewed all the time and tell as
    much as a probe. One timer per cluster, reset only when it fires; it is all that a cluster at rest costs here.
    """

    def __init__(
        self, clock: Clock, *, ask: Callable[[], None], notify: Callable[[], None], heard: Callable[[], float]
    ) -> None:
        self._clock = clock
        self._ask = ask
        self._notify = notify
        self._heard = heard
        self._since = 0.0  # by the clock that never jumps
        self._passed = 0  # how many of AGES
        self._timer: asyncio.TimerHandle | None = None

    def count(self, ago: float = 0.0) -> None:
        """From the last success on, or from the beginning."""
        self._since = self._clock.monotonic() - ago
        self._passed = 0
        if self._timer is None:
            self._age()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _age(self) -> None:
        self._timer = None
        age, heard = self._clock.monotonic() - self._since, self._heard()
        if heard < age:
            self._since += age - heard
            self._passed, age = 0, heard
        while self._passed < len(AGES) and age >= AGES[self._passed]:
            self._passed += 1
            (self._ask if self._passed == 1 else self._notify)()
        if self._passed < len(AGES):
            # Rounding can leave less than the clock shows: without a least wait, a virtual clock would stand still.
            wait = max(AGES[self._passed] - age, LEAST_SECONDS)
            # Not in the context of whoever connected: it would last as long as the connection.
            self._timer = asyncio.get_running_loop().call_later(wait, self._age, context=Context())


@dataclass(slots=True)
class Link:
    """What we know about the way to one cluster."""

    remote: Remote
    silence: Silence
    connected: bool = False
    why: str = "connecting to the workload cluster"
    failures: int = 0  # of attempts or probes, in a row
    began: float | None = None  # when the first attempt was made, by the wall clock
    last_probe: float | None = None  # the last successful one, by the wall clock
    secret_version: str = ""
    digest: bytes = b""  # of the kubeconfig in use
    tried: tuple[bytes, Client] | None = None  # what has got no answer yet: a kubeconfig's digest, and its client

    @asynccontextmanager
    async def attempt(self, digest: bytes, connect: Callable[[], Client]) -> AsyncIterator[Client]:
        """A client for one attempt. If nothing answers, it is kept for the next one with the same kubeconfig: a cluster
        that comes up is tried many times, and to make a client costs more than an attempt."""
        if self.tried is not None and self.tried[0] != digest:
            await self.end_attempts()
        client, self.tried = connect() if self.tried is None else self.tried[1], None
        try:
            yield client
        except (Unavailable, TimeoutError):
            self.tried = digest, client
            raise
        except BaseException:
            await client.close()
            raise

    async def end_attempts(self) -> None:
        tried, self.tried = self.tried, None
        if tried is not None:
            await tried[1].close()


def worded(error: Exception) -> str:
    """Why a cluster could not be reached."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
