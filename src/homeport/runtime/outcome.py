"""What a reconcile ends with. None: converged. Wait: not finished, and why. Terminal: pointless until it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace


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


def sooner(wait: Wait | None, timer: Wait | None) -> Wait | None:
    """The reason of `wait`, and the earlier of the two times; `timer` alone if nothing is waited for."""
    if timer is None or wait is None:
        return wait or timer
    if timer.after is not None and (wait.after is None or timer.after < wait.after):
        return replace(wait, after=timer.after)
    return wait


class Terminal(Exception):
    """Retrying is pointless until the object changes."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
