"""Logs of a running plane: lines for people on a terminal, JSON otherwise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.runtime.telemetry.stream import LogStreams


def leave_rich_out() -> None:
    """Until `allow_rich`, rich is not imported: structlog would, to draw tracebacks, and takes five times as long then.

    Only the first import of structlog counts, so call this before importing any other module of Homeport that logs.
    """
    if "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]  # "not installed", to whoever asks


def allow_rich() -> None:
    if sys.modules.get("rich", sys) is None:
        del sys.modules["rich"]


def import_structlog() -> None:
    """Imports structlog without rich."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    leave_rich_out()
    try:
        import structlog  # noqa: F401
    finally:
        allow_rich()


def configure(*, level: str = "info", json: bool | None = None, colour: bool | None = None) -> LogStreams:
    """`level`: as in runtime.log.parse_levels. `json`, `colour` None: decided by whether standard error is a terminal.

    Gives the streams of the controllers' lines, for the `log` endpoint of Pods.
    """
    import_structlog()
    from homeport.runtime.telemetry import log
    from homeport.runtime.telemetry.stream import LogStreams

    terminal = sys.stderr.isatty()
    streams = LogStreams()
    structured = not terminal if json is None else json
    coloured = terminal if colour is None else colour
    log.configure(levels=log.parse_levels(level), json=structured, colour=coloured, out=sys.stderr, streams=streams)
    return streams
