"""When to look again at the latest."""

from __future__ import annotations

from homeport.runtime.outcome import Wait


def sooner(wait: Wait | None, timer: Wait | None) -> Wait | None:
    """What is waited for comes first; the timer only says when to look at the latest."""
    if timer is None or wait is None:
        return wait or timer
    if timer.after is not None and (wait.after is None or timer.after < wait.after):
        return Wait(wait.reason, wait.message, after=timer.after, quiet=wait.quiet)
    return wait
