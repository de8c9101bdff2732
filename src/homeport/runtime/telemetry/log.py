"""Structured logs: JSON for machines or a line for people, with the object in work on every line and no secret on any.

Everybody calls `structlog.get_logger(__name__)`; `configure` decides what becomes of it. A line below the level of its
logger costs about a microsecond, all of it structlog's.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
import structlog
from structlog.contextvars import merge_contextvars

from homeport.runtime.telemetry.redact import redacted, scrub
from homeport.runtime.telemetry.stream import PROCESS, LogStreams

Fields = dict[str, Any]
Render = Callable[[Fields], str]

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_TEXT_LIMIT = 16 * 1024
_CONTEXT = ("controller", "object")  # what a line is about comes before what it says


@dataclass(frozen=True, slots=True)
class Levels:
    """A level for all, and others for loggers by the beginning of their names."""

    default: int = logging.INFO
    by_logger: Mapping[str, int] = field(default_factory=dict)

    def of(self, logger: str) -> int:
        name = logger
        while name:
            if name in self.by_logger:
                return self.by_logger[name]
            name = name.rpartition(".")[0]
        return self.default


def parse_levels(text: str) -> Levels:
    """`info`, or `info,homeport.store=debug`. Raises ValueError."""
    default, by_logger = logging.INFO, {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, level = part.rpartition("=")
        if level.lower() not in _LEVELS:
            raise ValueError(f"log level {part!r}: must be one of {', '.join(_LEVELS)}, or LOGGER=LEVEL")
        if equals:
            by_logger[name.strip()] = _LEVELS[level.lower()]
        else:
            default = _LEVELS[level.lower()]
    return Levels(default, by_logger)


def render_json(fields: Fields) -> str:
    return orjson.dumps(fields, default=str).decode()


_COLOURS = {
    "debug": "\x1b[2m",
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_SHOWN_FIRST = ("time", "level", "logger", "event", "traceback")


def render_text(fields: Fields) -> str:
    """`12:00:01 info    waiting  controller=machine object=default/a reason=...`"""
    return _line(fields, *[""] * 4)


def render_colour(fields: Fields) -> str:
    return _line(fields, _COLOURS.get(fields.get("level", ""), ""), _BOLD, _DIM, _PLAIN)


def _line(fields: Fields, colour: str, bold: str, dim: str, plain: str) -> str:
    moment = str(fields.get("time", ""))[11:19]
    more = " ".join(f"{dim}{k}={plain}{_shown(v)}" for k, v in fields.items() if k not in _SHOWN_FIRST)
    level = str(fields.get("level", ""))
    head = f"{dim}{moment}{plain} {colour}{level:<8}{plain} {bold}{fields.get('event', '')}{plain}"
    line = f"{head}  {more}" if more else head
    return f"{line}\n{fields['traceback']}" if "traceback" in fields else line


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value if value and value.isprintable() and " " not in value else orjson.dumps(value).decode()
    return orjson.dumps(value, default=str).decode()


class Pipeline:
    """From what was said to bytes: on a file, and in the stream of the controller that said it."""

    def __init__(self, render: Render, render_stream: Render, out: TextIO | None, streams: LogStreams | None) -> None:
        self._render = render
        self._render_stream = render_stream
        self._out = out
        self._streams = streams

    def emit(self, logger: str, level: str, fields: Fields) -> None:
        """`fields` as they were given, not yet fit to be shown."""
        now = time.time()
        shown: Fields = {"time": _moment(now), "level": level, "logger": logger, "event": fields.pop("event", "")}
        for name in _CONTEXT:
            if name in fields:
                shown[name] = fields.pop(name)
        if fields.get("exc_info"):
            fields["traceback"] = _traceback(fields["exc_info"])
        fields.pop("exc_info", None)
        fields.pop("stack_info", None)
        shown.update(fields)
        shown = redacted(shown)
        line = self._render(shown)
        if self._streams is not None:
            text = line if self._render is self._render_stream else self._render_stream(shown)
            stream = self._streams.source(str(shown.get("controller", PROCESS)))
            stream.push(now, text[:_TEXT_LIMIT], str(shown.get("object", "")))
        if self._out is not None:
            self._write(line)

    def _write(self, line: str) -> None:
        assert self._out is not None
        try:
            self._out.write(line + "\n")
            self._out.flush()
        except (OSError, ValueError):
            self._out = None  # the terminal is gone; the streams still are there


_second: tuple[int, str] = (0, "")  # the last one shown: most lines share it with the line before


def _moment(now: float) -> str:
    global _second
    whole = int(now)
    second, text = _second
    if second != whole:
        text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        _second = (whole, text)
    return f"{text}.{int((now - whole) * 1e6):06d}Z"


def _traceback(raised: Any) -> str:
    """Without local variables: those hold objects, and objects hold secrets."""
    if isinstance(raised, BaseException):
        error: BaseException | None = raised
    elif isinstance(raised, tuple):
        error = raised[1]
    else:
        error = sys.exc_info()[1]
    return scrub("".join(traceback.format_exception(error)).rstrip()) if error is not None else ""


class _Logger:
    """What structlog hands the finished event to."""

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def msg(self, *args: Any, **kw: Any) -> None:
        """Everything was done by the processor before."""

    debug = info = warning = error = critical = exception = fatal = warn = log = msg


def configure(
    *,
    levels: Levels | None = None,
    json: bool = True,
    colour: bool = False,
    out: TextIO | None = None,
    streams: LogStreams | None = None,
) -> Pipeline:
    """Decides for the whole process. `out` None: nothing is written, the streams still are fed."""
    levels = levels or Levels()
    plain = render_json if json else render_text
    pipeline = Pipeline(render_colour if colour and not json else plain, plain, out, streams)

    def finish(logger: _Logger, method: str, event: Any) -> Any:
        pipeline.emit(logger.name, "error" if method == "exception" else method, event)
        raise structlog.DropEvent

    def wrap(logger: _Logger, processors: Any, context: Any) -> Any:
        filtering: Any = structlog.make_filtering_bound_logger(levels.of(logger.name))
        return filtering(logger, processors, context)

    structlog.configure(
        processors=[merge_contextvars, finish],
        wrapper_class=wrap,  # type: ignore[arg-type]  # any callable will do: the level depends on the logger
        logger_factory=_Logger,
        cache_logger_on_first_use=True,
    )
    _bridge(pipeline, levels)
    return pipeline


class _Bridge(logging.Handler):
    """Lines of libraries that use the standard library's logging."""

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self._pipeline = pipeline

    def emit(self, record: logging.LogRecord) -> None:
        fields: Fields = {"event": record.getMessage()}
        if record.exc_info:
            fields["exc_info"] = record.exc_info
        self._pipeline.emit(record.name, record.levelname.lower(), fields)


def _bridge(pipeline: Pipeline, levels: Levels) -> None:
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, _Bridge)]:
        root.removeHandler(handler)
    root.addHandler(_Bridge(pipeline))
    root.setLevel(max(logging.WARNING, levels.default))
    for name, level in levels.by_logger.items():
        logging.getLogger(name).setLevel(level)
