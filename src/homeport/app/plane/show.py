"""What a running plane prints for the user who started it, and how that user stops it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

from homeport.app.report.description import Description
from homeport.app.report.part import Part


class Show(Protocol):
    """Prints what happens."""

    def say(self, text: str) -> None: ...

    def ready(self, url: str) -> None: ...

    def changed(self, part: Part) -> None: ...

    async def follow(self, describe: Callable[[], Description]) -> None:
        """Shows how things are, again and again, until cancelled."""


def stop_event() -> asyncio.Event:
    """Set by SIGTERM and SIGINT (Ctrl-C)."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping
