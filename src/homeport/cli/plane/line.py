"""The output of `homeport up` without a terminal: one line per event, and a status line now and then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import click

from homeport.app.report.description import Description
from homeport.app.report.part import Part

_EVERY_SECONDS = 60.0


class Lines:
    """`ready_lines(url)` gives the lines to print once the plane is ready."""

    def __init__(self, ready_lines: Callable[[str], Sequence[str]], *, every: float = _EVERY_SECONDS) -> None:
        self._ready_lines = ready_lines
        self._every = every

    def say(self, text: str) -> None:
        click.echo(text)

    def ready(self, url: str) -> None:
        for line in self._ready_lines(url):
            self.say(line)

    def changed(self, part: Part) -> None:
        line = part_line(part)
        if line:
            self.say(line)

    async def follow(self, describe: Callable[[], Description]) -> None:
        """At most one line per period, and none while nothing changes."""
        before, since = describe(), time.monotonic()
        while True:
            await asyncio.sleep(self._every)
            now = describe()
            if _changed(before, now):
                self.say(progress_line(before, now, time.monotonic() - since))
            before, since = now, time.monotonic()


def part_line(part: Part) -> str:
    """'' for what goes without saying."""
    if part.state == "waiting":
        return f"{part.name}: crashed ({part.error}), restarting in {part.retry_in:.1f} s"
    if part.state == "following":
        return f"{part.name}: standing by: another replica is the leader"
    if part.state == "running":
        return f"{part.name}: running" + (f" again after {part.crashes} crashes" if part.crashes else "")
    return ""


def progress_line(before: Description, now: Description, seconds: float) -> str:
    figures = [f"{sum(now.objects.values()):,} objects"]
    if now.revision:
        figures.append(f"{(now.revision - before.revision) / seconds:.1f} writes/s")
        figures.append(f"{(now.requests - before.requests) / seconds:.1f} requests/s")
    figures.append(f"{(_reconciles(now) - _reconciles(before)) / seconds:.1f} reconciles/s")
    figures.append(f"{sum(c.queue for c in now.controllers)} keys in queues")
    figures.append(f"{sum(c.unfinished_count for c in now.controllers)} objects unfinished")
    return ", ".join(figures)


def _reconciles(found: Description) -> int:
    return sum(controller.reconciles for controller in found.controllers)


def _changed(before: Description, now: Description) -> bool:
    return (before.revision, before.objects, _reconciles(before)) != (now.revision, now.objects, _reconciles(now))
