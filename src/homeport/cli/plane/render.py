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
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from homeport import __version__
from homeport.app.report.description import Description
from homeport.cli.plane.overview import Line, controllers, overview, summary

_PERIOD_SECONDS = 1.0
_LOG_BYTES = 64 * 1024
_VIEWS = {b"c": "controllers", b"l": "log"}


class Screen:
    """Fills the terminal and is redrawn in place; the terminal is as before when the plane stops."""

    def __init__(
        self,
        url: str,
        kubeconfig: str,
        log: Path,
        began: float,
        console: Console | None = None,
        command: Callable[[str], str] | None = None,
    ) -> None:
        self._console = console or Console()
        self._url = url
        self._kubeconfig = kubeconfig
        self._log = log
        self._began = began
        self._command = command
        self._view = "clusters"
        self._pressed = asyncio.Event()
        self._last: Description | None = None

    async def follow(self, describe: Callable[[], Description]) -> None:
        live = Live(
            console=self._console, auto_refresh=False, screen=True, redirect_stdout=False, redirect_stderr=False
        )
        with _keys(self._press), live:
            while True:
                width, height = self._console.size
                found = self._last = describe()
                log = _tail(self._log, height) if self._view == "log" else ()
                lines = picture(
                    found, self._head(found), width, height, view=self._view, log=log, command=self._command
                )
                live.update(drawn(lines), refresh=True)
                self._pressed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._pressed.wait(), _PERIOD_SECONDS)

    def summary(self, resume: str) -> list[str]:
        """What stays on the terminal."""
        up = _clock(time.monotonic() - self._began)
        lines = [f"Homeport stops after {up}. Clusters keep running; nothing manages them until the next start."]
        lines += [line.text for line in summary(self._last)] if self._last is not None else []
        lines.append(f"log: {self._log}")
        return [*lines, f"next: {resume}"] if resume else lines

    def _press(self, keys: bytes) -> None:
        for number in range(len(keys)):
            chosen = _VIEWS.get(keys[number : number + 1].lower())
            if chosen is not None:
                self._view = "clusters" if self._view == chosen else chosen
                self._pressed.set()

    def _head(self, found: Description) -> list[Line]:
        up = _clock(time.monotonic() - self._began)
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
    found: Description,
    head: Sequence[Line],
    width: int,
    height: int,
    *,
    view: str = "clusters",
    log: Sequence[str] = (),
    command: Callable[[str], str] | None = None,
) -> list[Line]:
    """The view, exactly as high as the terminal: the head, the body, and the keys in the last row."""
    # Addresses and paths are never cut off: users copy them.
    head = [Line(line.text[at : at + width], line.style) for line in head for at in range(0, len(line.text), width)]
    keys = "   ".join(f"{key.decode()}: {'clusters' if view == name else name}" for key, name in _VIEWS.items())
    left = max(4, height - len(head) - 2)  # a blank row, and the keys
    if view == "controllers":
        body = controllers(found.controllers, height=left)
    elif view == "log":
        body = [Line(each) for each in log[-left:]]
    else:
        body = overview(found, width=width, height=left, command=command)
    empty = [Line("")] * (left - len(body))
    return [*head, Line(""), *body, *empty, Line(f"{keys}   Ctrl-C: stop", "dim")]


def drawn(lines: Sequence[Line]) -> Group:
    return Group(*(Text(line.text, style=line.style, no_wrap=True, overflow="ellipsis") for line in lines))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}h{minutes % 60:02d}m{rest:02d}s"


def _tail(file: Path, lines: int) -> list[str]:
    """The last lines of the log, which may just be rotated."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
            return log.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return []


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
