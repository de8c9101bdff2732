"""When a request is worth repeating, and how long to wait before."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from homeport.client.errors import ApiError, Internal, Timeout, TooManyRequests, Unavailable

# The server says with these, and a Retry-After, that it did nothing: repeating is safe for every verb.
REFUSED = frozenset({429, 503})
TRANSIENT: tuple[type[ApiError], ...] = (Unavailable, TooManyRequests, Timeout, Internal)


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` counts the first one. `patience_seconds` bounds the sum of all waits of one request.

    `apart_seconds`: for so long at most, requests are refused at once after others could not connect; 0: never.
    """

    attempts: int = 5
    first_seconds: float = 0.1
    cap_seconds: float = 10.0
    patience_seconds: float = 60.0
    apart_seconds: float = 0.0

    def pause(self, attempt: int) -> float:
        """Before attempt number `attempt` + 1: exponential, with jitter so that clients do not march in step."""
        full = min(self.cap_seconds, self.first_seconds * 2.0 ** (attempt - 1))
        return full * random.uniform(0.5, 1.0)  # noqa: S311 - not for secrets


NEVER = Retry(attempts=1)


def retry_after(headers: Mapping[str, str]) -> int:
    """Seconds of a Retry-After header; 0 without one. API servers send a number, never a date."""
    text = headers.get("Retry-After", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0
