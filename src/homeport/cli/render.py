"""The live view of a running plane on a terminal. The only module that knows rich."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import IO, Any, TextIO, cast

from rich.console import Console, Group
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.table import Table
from rich.text import Text

from homeport.app.description import ControllerState, Description, PartState

_PERIOD_SECONDS = 1.0
_SHOWN = 5
_MARKS = {"running": ("●", "green"), "following": ("○", "cyan"), "starting": ("◌", "yellow"), "waiting": ("✗", "red")}


class Screen:
    """Redrawn in place; log lines go by above it, and it is gone without a trace when the plane stops."""

    def __init__(self, url: str, began: float, console: Console | None = None) -> None:
        self._console = console or Console()
        self._url = url
        self._began = began

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def above(self, stream: TextIO) -> IO[str]:
        """A stream whose lines appear above the view."""
        return cast("IO[str]", FileProxy(self._console, stream))

    async def follow(self, describe: Callable[[], Description]) -> None:
        before, since = describe(), time.monotonic()
        with Live(console=self._console, auto_refresh=False, transient=True, redirect_stderr=False) as live:
            while True:
                now, moment = describe(), time.monotonic()
                live.update(picture(before, now, max(moment - since, 1e-3), self._head()), refresh=True)
                before, since = now, moment
                await asyncio.sleep(_PERIOD_SECONDS)

    def _head(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{self._url}  up {minutes // 60}h{minutes % 60:02d}m{seconds:02d}s  (Ctrl-C stops)"


def picture(before: Description, now: Description, seconds: float, head: str) -> Group:
    rows = Table.grid(padding=(0, 2))
    rows.add_row("parts", _parts(now.parts))
    rows.add_row("objects", Text(_objects(before, now, seconds)))
    for each in now.simulators:
        machines = f"{each.running} of {each.machines} machines running, {each.clusters} clusters"
        rows.add_row("sim", Text(f"{each.name} {each.url}, {machines}"))
    if now.revision:
        rows.add_row("requests", Text(f"{(now.requests - before.requests) / seconds:,.1f}/s"))
    found: list[Any] = [Text(""), Text(head, style="bold"), rows]
    if now.controllers:
        found.append(_controllers(before.controllers, now.controllers, seconds))
    found += [Text(f"can't follow {kind}: {why}", style="red") for kind, why in now.blind.items()]
    return Group(*found, *_unfinished(now.controllers))


def _parts(parts: Sequence[PartState]) -> Text:
    text = Text()
    for part in parts:
        mark, colour = _MARKS.get(part.state, ("·", "dim"))
        text.append(f"{mark} ", style=colour)
        text.append(f"{part.name}  ")
        if part.state == "waiting":
            text.append(f"{part.error}, again in {part.retry_in:.0f} s  ", style="red")
    return text


def _objects(before: Description, now: Description, seconds: float) -> str:
    count = f"{sum(now.objects.values()):,} of {len(now.objects)} kinds"
    if not now.revision:
        return f"{count} in caches"
    return f"{count} at revision {now.revision:,}, {(now.revision - before.revision) / seconds:,.1f} writes/s"


def _controllers(before: Sequence[ControllerState], now: Sequence[ControllerState], seconds: float) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("controller")
    for name in ("queue", "delayed", "reconciles/s", "errors", "unfinished"):
        table.add_column(name, justify="right")
    earlier = {each.name: each.reconciles for each in before}
    for each in now:
        rate = max(0, each.reconciles - earlier.get(each.name, each.reconciles)) / seconds
        figures = (each.queue, each.delayed, f"{rate:,.1f}", each.errors, each.unfinished_count)
        table.add_row(each.name, *(str(figure) for figure in figures))
    return table


def _unfinished(controllers: Sequence[ControllerState]) -> list[Text]:
    found = [(each.name, item) for each in controllers for item in each.unfinished]
    lines = [
        Text(f"{item.object}: {item.reason}{': ' if item.message else ''}{item.message}  ({name})", style="yellow")
        for name, item in found[:_SHOWN]
    ]
    left = sum(each.unfinished_count for each in controllers) - len(lines)
    if lines and left > 0:
        lines.append(Text(f"and {left} more: see 'homeport status'", style="dim"))
    return lines
