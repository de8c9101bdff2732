"""Logs of a running plane: lines for people on a terminal, JSON otherwise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.runtime.telemetry.stream import LogStreams


def import_structlog() -> None:
    """Imports structlog without rich, which it would draw tracebacks with and which takes five times as long to import.

    Only the first import counts, so import this before any other module of Homeport that logs.
    """
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # "not installed", to whoever asks
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]


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
