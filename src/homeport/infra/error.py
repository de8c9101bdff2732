"""What can go wrong at a vendor, in the few words that decide what happens next.

A vendor's client turns each of its failures into one of these; `policy` says what the reconcilers make of it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass


class ProviderError(Exception):
    """`message` is a sentence for the user: what is wrong, on which thing, and what to do."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code  # the vendor's error code, for support requests
        self.connecting = False  # no connection could be made: nothing was asked
        self.origin = ""  # where the credentials were read, as the message names it
        self.own = False  # only the settings of this user are wrong: others may reach the same endpoint


class Missing(ProviderError):
    """Something that the spec names is not there."""


class Taken(ProviderError):
    """What we need belongs to somebody else: an address, a name, a machine."""


class Misconfigured(ProviderError):
    """The spec or the credentials can't be used as they are written."""


class Ambiguous(Misconfigured):
    """A name that several things have. `candidates`: what tells them apart, each with its id."""

    def __init__(self, message: str, candidates: Sequence[str]) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


class Denied(ProviderError):
    """Credentials are wrong, expired or not sufficient. `after`: seconds until they may be shown again."""

    def __init__(self, message: str, *, code: str = "", after: float = 0.0) -> None:
        super().__init__(message, code=code)
        self.after = after


class Exhausted(ProviderError):
    """No capacity or quota is left."""


class Throttled(ProviderError):
    """Told to come back later."""

    def __init__(self, message: str, *, after: float = 5.0, code: str = "") -> None:
        super().__init__(message, code=code)
        self.after = after


class Unreachable(ProviderError):
    """No answer, or none that makes sense: network, TLS, timeouts, 5xx. What was asked may have been done."""


class Stale(ProviderError):
    """Somebody changed the thing between our read and our write: read again."""


class Outdated(Stale):
    """The version that we named is not the current one. Nothing else stands against the request."""


class Rejected(ProviderError):
    """The vendor rejected this request, or a task that it started failed."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The condition's reason, and when to try again (None: when the object changes or something it names does).

    Nothing transient is ever final, and what is retried in vain slows down (`slowest`).
    """

    reason: str
    after: float
    slowest: float
    warning: bool = True


_AFTERWARDS_SECONDS = 0.5

POLICIES: dict[type[ProviderError], Policy] = {
    Missing: Policy("NotFound", 15.0, 300.0),
    Taken: Policy("InUse", 15.0, 300.0),
    Misconfigured: Policy("InvalidConfiguration", 60.0, 600.0),
    Denied: Policy("AccessDenied", 15.0, 300.0),
    Exhausted: Policy("InsufficientCapacity", 30.0, 300.0),
    Throttled: Policy("Throttled", 1.0, 60.0, warning=False),
    Unreachable: Policy("Unreachable", 2.0, 120.0),
    Stale: Policy("Changed", 0.2, 30.0, warning=False),
    Rejected: Policy("Rejected", 15.0, 300.0),
}


def policy_of(error: ProviderError) -> Policy:
    for kind in type(error).__mro__:
        if kind in POLICIES:
            return POLICIES[kind]
    return Policy("ProviderError", 15.0, 300.0)


def can_not_ask(error: ProviderError) -> bool:
    """Whether it says nothing about what was asked for: only that the vendor can't be asked at the moment."""
    return error.connecting or isinstance(error, Unreachable | Denied | Throttled)


def seen_from(origin: str, error: ProviderError) -> ProviderError:
    """The error with the Secret of this user. A connection is shared: another user's Secret may have opened it."""
    if not origin or error.origin in ("", origin):
        return error
    own = copy.copy(error)  # others who wait for the same connection have the same error
    own.message = error.message.replace(error.origin, origin)
    own.args = (own.message,)
    own.origin = origin
    return own


def delay_of(error: ProviderError, failures: int) -> float:
    """Seconds until the next try, after that many failures in a row (1: the first)."""
    policy = policy_of(error)
    if isinstance(error, Throttled):
        return max(error.after, policy.after)
    if isinstance(error, Denied) and error.after:  # not before, and not much later: they may be good again by then
        return error.after + _AFTERWARDS_SECONDS
    return float(min(policy.after * 2 ** min(failures - 1, 10), policy.slowest))
