"""What `homeport up` shows on a terminal: lines while it starts, then a view that fills the screen, then a summary."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.app.log import allow_rich
from homeport.app.report.description import Description
from homeport.app.report.part import Part
from homeport.cli.plane.line import Lines

if TYPE_CHECKING:
    from homeport.cli.plane.render import Screen

_STDERR = 2


class Live(Lines):
    """Lines until it is ready: what draws the view takes longer to import than the server to start.

    While the view is shown, standard error goes to the log file, so that nothing is written across the view.
    """

    def __init__(
        self,
        ready_lines: Callable[[str], Sequence[str]],
        *,
        kubeconfig: str = "",
        log: Path | None = None,
        resume: str = "",
        command: Callable[[str], str] | None = None,
    ) -> None:
        """`resume`: the command that starts this plane again. `command`: writes a homeport command for this plane."""
        super().__init__(ready_lines)
        self._kubeconfig = kubeconfig
        self._log = log
        self._resume = resume
        self._command = command
        self._url = ""
        self._began = time.monotonic()
        self._screen: Screen | None = None

    def say(self, text: str) -> None:
        if self._screen is not None:
            os.write(_STDERR, f"{text}\n".encode())  # the log
        else:
            super().say(text)

    def ready(self, url: str) -> None:
        self._url = url
        super().ready(url)

    def changed(self, part: Part) -> None:
        if part.crashes:  # the view shows the rest
            super().changed(part)

    async def follow(self, describe: Callable[[], Description]) -> None:
        allow_rich()
        from homeport.cli.plane.render import Screen

        log = self._log or _temporary_log()
        screen = self._screen = Screen(self._url, self._kubeconfig, log, self._began, command=self._command)
        try:
            with _stderr_to(log):
                await screen.follow(describe)
        finally:
            self._screen = None
            for line in screen.summary(self._resume):
                click.echo(line)


def _temporary_log() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="homeport-", suffix=".log")
    os.close(descriptor)
    return Path(name)


@contextlib.contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """By descriptor: the plane rotates its log by that, and libraries write to it without asking Python."""
    saved = os.dup(_STDERR)
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(log, _STDERR)
    os.close(log)
    try:
        yield
    finally:
        os.dup2(saved, _STDERR)
        os.close(saved)
