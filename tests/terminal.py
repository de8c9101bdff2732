"""A terminal for tests: runs a program on a pseudo-terminal and shows its screen as text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import pyte

_ALTERNATE = re.compile(rb"(\x1b\[\?1049[hl])")


def _take_interrupts() -> None:
    """A shell that runs the tests in the background has them started with Ctrl-C ignored, and programs inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """`screen` is what a person sees now; `history` are the lines that have left it at the top."""

    def __init__(
        self, arguments: Sequence[str], *, columns: int, rows: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self._size = columns, rows
        self._main = self._screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        own = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
        self._process = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, **(environment or {}), **own},
            preexec_fn=_take_interrupts,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._master)

    @property
    def lines(self) -> list[str]:
        """The rows of the screen, without the empty ones at its end."""
        found = [line.rstrip() for line in self._screen.display]
        while found and not found[-1]:
            found.pop()
        return found

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def history(self) -> str:
        """What has left the screen, and the screen."""
        width = range(self._screen.columns)
        gone = ("".join(row[column].data for column in width).rstrip() for row in self._screen.history.top)
        return "\n".join([*gone, *self.lines])

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal sends it to the program in front."""
        os.killpg(self._process.pid, signal.SIGINT)

    def wait_until(self, seen: Callable[[Terminal], bool], *, seconds: float = 60.0) -> None:
        """Reads until the screen shows it. Fails with the screen."""
        deadline = time.monotonic() + seconds
        while not seen(self):
            left = deadline - time.monotonic()
            assert left > 0, f"not shown after {seconds:.0f} s:\n{self.text}"
            assert self._read(left), f"the program ended (code {self._process.wait()}):\n{self.history}"

    def wait(self, *, seconds: float = 60.0) -> int:
        """Reads to the end of the program; its exit code."""
        deadline = time.monotonic() + seconds
        while self._read(max(0.0, deadline - time.monotonic())):
            assert time.monotonic() < deadline, f"still running after {seconds:.0f} s:\n{self.text}"
        return self._process.wait(timeout=seconds)

    def _read(self, seconds: float) -> bool:
        """Whether there may be more to read."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: the other end is closed
            return False
        self._feed(data)
        return bool(data)

    def _feed(self, data: bytes) -> None:
        """pyte knows no alternate screen: programs that fill the terminal draw on one, and leave the other as it was."""
        for part in _ALTERNATE.split(data):
            if _ALTERNATE.fullmatch(part):
                self._screen = pyte.HistoryScreen(*self._size) if part.endswith(b"h") else self._main
                self._stream = pyte.ByteStream(self._screen)
            else:
                self._stream.feed(part)
