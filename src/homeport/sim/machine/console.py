"""The serial console of a machine: its output since boot."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from homeport.runtime.clock import Clock

LINES_KEPT = 400


class Console:
    """Lines with the seconds since power-on, as kernels write them. Old lines make room for new ones."""

    __slots__ = ("_clock", "_lines", "_sink", "_started")

    def __init__(self, clock: Clock, sink: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._sink = sink  # called with every line
        self._started = clock.monotonic()
        self._lines: deque[tuple[float, str]] = deque(maxlen=LINES_KEPT)

    def restart(self) -> None:
        self._started = self._clock.monotonic()

    def say(self, text: str) -> None:
        now = self._clock.monotonic() - self._started
        for line in text.rstrip("\n").split("\n"):
            self._lines.append((now, line))
            if self._sink is not None:
                self._sink(_stamped(now, line))

    def lines(self) -> list[str]:
        return [line for _, line in self._lines]

    def text(self) -> str:
        return "".join(f"{_stamped(at, line)}\n" for at, line in self._lines)


def _stamped(at: float, line: str) -> str:
    return f"[{at:12.6f}] {line}"
