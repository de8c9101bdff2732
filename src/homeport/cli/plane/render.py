"""The live view of a running plane on a terminal. The only module that knows rich."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TextIO, cast

from rich.console import Console, Group
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

from homeport import __version__
from homeport.app.report.description import Description
from homeport.cli.plane.overview import Line, controllers, overview

_PERIOD_SECONDS = 1.0
_CONTROLLERS_KEY = b"c"


class Screen:
    """Redrawn in place; log lines go by above it, and it is gone without a trace when the plane stops."""

    def __init__(self, url: str, kubeconfig: str, began: float, console: Console | None = None) -> None:
        self._console = console or Console()
        self._url = url
        self._kubeconfig = kubeconfig
        self._began = began
        self._controllers = False
        self._pressed = asyncio.Event()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def above(self, stream: TextIO) -> IO[str]:
        """A stream whose lines appear above the view."""
        return cast("IO[str]", FileProxy(self._console, stream))

    async def follow(self, describe: Callable[[], Description]) -> None:
        live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False)
        with _keys(self._press), live:
            while True:
                width, height = self._console.size
                found = describe()
                lines = picture(found, self._head(found), width, height, show_controllers=self._controllers)
                live.update(drawn(lines), refresh=True)
                self._pressed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._pressed.wait(), _PERIOD_SECONDS)

    def _press(self, keys: bytes) -> None:
        if keys.lower().count(_CONTROLLERS_KEY) % 2:
            self._controllers = not self._controllers
            self._pressed.set()

    def _head(self, found: Description) -> list[Line]:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        up = f"{minutes // 60}h{minutes % 60:02d}m{seconds:02d}s"
        lines = [Line(f"Homeport {__version__}  {self._url}  up {up}", "bold")]
        if self._kubeconfig:
            lines.append(Line(f"kubeconfig  {self._kubeconfig}"))
        return [
            *lines,
            *(
                Line(f"simulator   {each.name} {each.url}, {each.running} of {each.machines} machines running")
                for each in found.simulators
            ),
        ]


def picture(
    found: Description, head: Sequence[Line], width: int, height: int, *, show_controllers: bool = False
) -> list[Line]:
    """The view, never higher than the terminal: a blank line, the head, what there is to see, and the keys."""
    keys = f"c: {'clusters' if show_controllers else 'controllers'}   Ctrl-C: stop"
    left = max(6, height - len(head) - 5)  # two blank lines, the keys, and a last line of log above
    if show_controllers:
        body = controllers(found.controllers, height=left)
    else:
        body = overview(found, width=width, height=left)
    return [Line(""), *head, Line(""), *body, Line(keys, "dim")]


def drawn(lines: Sequence[Line]) -> Group:
    return Group(*(Text(line.text, style=line.style, no_wrap=True, overflow="ellipsis") for line in lines))


@contextlib.contextmanager
def _keys(press: Callable[[bytes], None]) -> Iterator[None]:
    """Single keys are read while the view is shown, where there is a keyboard. Ctrl-C stays a signal."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, lambda: press(os.read(descriptor, 64)))
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
