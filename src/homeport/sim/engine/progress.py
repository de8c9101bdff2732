"""When something that was started is done: at once, after some reads, after some time, or never."""

from __future__ import annotations

import random
import re
from typing import Final

import msgspec


class Progress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At once, unless one of the fields says otherwise. Of `reads` and `seconds`, the first to be reached counts."""

    reads: int | None = None
    seconds: float | None = None
    jitter: float = 0.0  # share of `seconds` that may be added or taken away
    never: bool = False

    def __post_init__(self) -> None:
        if (self.reads is not None and self.reads < 0) or (self.seconds is not None and self.seconds < 0):
            raise ValueError("reads and seconds can't be negative")
        if not 0 <= self.jitter <= 1:
            raise ValueError("jitter is a share from 0 to 1")

    def start(self, now: float, rng: random.Random) -> Countdown:
        if self.never:
            return Countdown(never=True)
        due = None
        if self.seconds is not None:
            due = now + self.seconds * (1 + self.jitter * rng.uniform(-1, 1))
        return Countdown(reads=self.reads, due=due, started=now)

    def scaled(self, factor: float) -> Progress:
        return self if self.seconds is None else msgspec.structs.replace(self, seconds=self.seconds * factor)


class Countdown(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How far one thing is. Plain state: it is saved with the world and goes on where it was."""

    reads: int | None = None
    due: float | None = None
    started: float = 0.0
    never: bool = False

    def done(self, now: float) -> bool:
        if self.never:
            return False
        if self.reads is None and self.due is None:
            return True
        return (self.reads is not None and self.reads <= 0) or (self.due is not None and now >= self.due)

    def read(self) -> Countdown:
        """Somebody looked."""
        return self if not self.reads else msgspec.structs.replace(self, reads=self.reads - 1)

    def share(self, now: float) -> float:
        """Roughly how much is done, from 0 to below 1, for progress bars."""
        if self.due is None or self.never or self.due <= self.started:
            return 0.0
        return min(0.99, max(0.0, (now - self.started) / (self.due - self.started)))


AT_ONCE: Final = Progress()
NEVER: Final = Progress(never=True)

_TIMES = re.compile(r"x(\d+(?:\.\d+)?)")
_SECONDS = re.compile(r"(?:seconds:)?(\d+(?:\.\d+)?)s?(?:~(\d+(?:\.\d+)?)%?)?")


def real_share(speed: str) -> float | None:
    """How much of real time a speed takes: `instant` or `zero` nothing, `real` or `realistic` all, `x10` a tenth.

    None for speeds that are not told by comparison with the real thing.
    """
    if speed in ("instant", "zero"):
        return 0.0
    if speed in ("real", "realistic"):
        return 1.0
    found = _TIMES.fullmatch(speed)
    return 1 / float(found.group(1)) if found and float(found.group(1)) > 0 else None


def parse_progress(text: str) -> Progress:
    """`instant`, `never`, `reads:3`, `2s`, `2s~30%` (with jitter)."""
    if text in ("instant", "at-once"):
        return AT_ONCE
    if text == "never":
        return NEVER
    if text.startswith("reads:") and text[6:].isdigit():
        return Progress(reads=int(text[6:]))
    if found := _SECONDS.fullmatch(text):
        jitter = float(found.group(2) or 0)
        return Progress(seconds=float(found.group(1)), jitter=jitter / 100)
    raise ValueError(f"{text!r} is not valid: expected instant, never, reads:3, 2s or 2s~30%")
