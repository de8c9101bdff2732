"""Why an add-on can't go on. The reconciler turns it into a Wait."""

from __future__ import annotations


class Problem(Exception):
    """`after`: seconds until it is tried again if nothing changes; None: a change brings us back."""

    def __init__(self, reason: str, message: str, *, after: float | None = None, warning: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.after = after
        self.warning = warning
