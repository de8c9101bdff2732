"""What `homeport up` shows on a terminal: lines while it starts, then a view that is redrawn in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, TextIO

from homeport.app.report.description import Description
from homeport.app.report.part import Part
from homeport.cli.plane.line import Lines

if TYPE_CHECKING:
    from homeport.cli.plane.render import Screen


class Switch:
    """A stream whose target can change: log lines must not tear the view apart."""

    def __init__(self, real: TextIO) -> None:
        self.real = real
        self.target: IO[str] = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)


def switch_log() -> Switch:
    """From here on the log goes through a Switch. To be called before logging is configured."""
    made = Switch(sys.stderr)
    sys.stderr = made  # what is asked of it, it asks the real one
    return made


class Live(Lines):
    """Lines until it is ready: what draws the view takes longer to import than the server to start."""

    def __init__(
        self, told: Callable[[str], Sequence[str]], log: Switch | None = None, *, kubeconfig: str = ""
    ) -> None:
        super().__init__(told)
        self._log = log
        self._kubeconfig = kubeconfig
        self._url = ""
        self._began = time.monotonic()
        self._screen: Screen | None = None

    def say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.say(text)
        else:
            super().say(text)

    def ready(self, url: str) -> None:
        self._url = url
        super().ready(url)

    def changed(self, part: Part) -> None:
        if part.crashes:  # the view shows the rest
            super().changed(part)

    async def follow(self, describe: Callable[[], Description]) -> None:
        from homeport.cli.plane.render import Screen

        screen = self._screen = Screen(self._url, self._kubeconfig, self._began)
        if self._log is not None:
            self._log.target = screen.above(self._log.real)
        try:
            await screen.follow(describe)
        finally:
            self._screen = None
            if self._log is not None:
                self._log.target = self._log.real
