"""What went wrong at a provider, on the object that asked for it, and when it is tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured, ProviderError, delay_of, policy_of
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.outcome import Wait

PENDING = "Pending"


class AccessDenied(Misconfigured):
    """The ProviderConfig is for others."""


class Failing(Protocol):
    """The part of a status that reports errors."""

    failure_reason: str
    failure_message: str
    attempts: int
    next_attempt: str | None


class Attempts:
    """Counts the failures of each object in a row: what is tried in vain is tried less often."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[Key, int] = {}

    def forget(self, key: Key) -> None:
        self._failures.pop(key, None)

    async def report(
        self,
        obj: Any,
        work: Awaitable[Wait | None],
        *,
        shown: Callable[[Any], Any],
        failed: Callable[[ProviderError], Wait],
    ) -> Wait | None:
        """Whatever goes wrong is on the object, with the time of the next attempt. `shown`: what users look at."""
        status, before = obj.status, shown(obj)
        status.observed_generation = obj.metadata.generation
        status.phase = status.phase or PENDING
        try:
            wait = await work
        except ProviderError as error:
            wait = failed(error)
        else:
            self.succeeded(key_of(obj), status)
        if shown(obj) != before:
            status.last_updated = rfc3339(self._clock.now())
        return wait

    def succeeded(self, key: Key, status: Failing) -> None:
        self.forget(key)
        status.failure_reason = status.failure_message = ""
        status.attempts, status.next_attempt = 0, None

    def failed(self, key: Key, status: Failing, error: ProviderError, more: str = "") -> Wait:
        """`more` is added to the message of the condition."""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        after, policy = delay_of(error, count), policy_of(error)
        status.failure_reason, status.failure_message = policy.reason, error.message
        status.attempts += 1
        status.next_attempt = rfc3339(self._clock.now() + after)
        reason = "ProviderAccessDenied" if isinstance(error, AccessDenied) else policy.reason
        return Wait(reason, f"{error.message}{more}", after=after, warning=policy.warning)
