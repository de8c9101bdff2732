"""The serial console of a machine: what it says while it boots, kept for whoever asks."""

from __future__ import annotations

from collections import deque

from homeport.runtime.clock import Clock

LINES_KEPT = 400


class Console:
    """Lines with the seconds since power-on, as kernels write them. Old lines make room for new ones."""

    __slots__ = ("_clock", "_lines", "_started")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._lines: deque[tuple[float, str]] = deque(maxlen=LINES_KEPT)

    def restart(self) -> None:
        self._started = self._clock.monotonic()

    def say(self, text: str) -> None:
        now = self._clock.monotonic() - self._started
        for line in text.rstrip("\n").split("\n"):
            self._lines.append((now, line))

    def lines(self) -> list[str]:
        return [line for _, line in self._lines]

    def text(self) -> str:
        return "".join(f"[{at:12.6f}] {line}\n" for at, line in self._lines)
