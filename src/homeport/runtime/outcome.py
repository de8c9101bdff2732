"""What a reconcile ends with. None: converged. Wait: not finished, and why. Terminal: pointless until it changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wait:
    """Not finished. `reason` is CamelCase for conditions, `message` a sentence for people; `after`: when to look again
    if no event comes first (None: an event will come)."""

    reason: str
    message: str = ""
    after: float | None = None
    quiet: bool = False  # a timer rather than something to explain: not logged
    warning: bool = False  # somebody should look: its event is a Warning

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


class Terminal(Exception):
    """Retrying is pointless until the object changes."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
