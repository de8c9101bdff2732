"""The server under fire as the tests see it, and the end of their time."""

from __future__ import annotations

import os
import ssl
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

# How long each fuzz test may take; raise it for a night's run.
SECONDS = float(os.environ.get("HOMEPORT_FUZZ_SECONDS", "4"))


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    token: str
    process: subprocess.Popen[str]
    tls: ssl.SSLContext
    log: Path

    @property
    def host(self) -> str:
        return str(urlsplit(self.url).hostname)

    @property
    def port(self) -> int:
        return int(urlsplit(self.url).port or 0)

    @property
    def memory(self) -> int:
        """Resident bytes of the server."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def trouble(self) -> str:
        """The end of the server's log."""
        return self.log.read_text()[-3000:]

    @property
    def alive(self) -> bool:
        return self.process.poll() is None


class Enough(Exception):
    """The time is over."""


class Deadline:
    """Ends a fuzz loop in time without failing it. Its time starts with the first round, after all preparation."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._end: float | None = None

    @property
    def over(self) -> bool:
        if self._end is None:
            self._end = time.monotonic() + self._seconds
            return False
        return time.monotonic() > self._end
