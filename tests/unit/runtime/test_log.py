from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from homeport.runtime.telemetry import log
from homeport.runtime.telemetry.log import Levels, configure, parse_levels, render_colour, render_text
from homeport.runtime.telemetry.stream import PROCESS, LogStreams


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(text) for text in out.getvalue().splitlines()]


def test_every_line_names_controller_and_object() -> None:
    out = io.StringIO()
    configure(out=out)
    logger = structlog.get_logger("homeport.core")
    with structlog.contextvars.bound_contextvars(controller="machine", object="default/a"):
        logger.info("waiting", reason="NoBootstrapData", after=5.0)
    (line,) = lines(out)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "homeport.core",
        "event": "waiting",
        "controller": "machine",
        "object": "default/a",
        "reason": "NoBootstrapData",
        "after": 5.0,
    }


def test_secrets_do_not_get_into_lines_or_streams() -> None:
    out, streams = io.StringIO(), LogStreams()
    configure(out=out, streams=streams)
    logger = structlog.get_logger("homeport.core")
    secret = {"kind": "Secret", "data": {"k": "aHVudGVyMg=="}}
    try:
        raise ValueError("password=hunter2 is wrong")
    except ValueError:
        logger.exception("failed with token=hunter2", token="hunter2", seen=secret, header="Bearer hunter2hunter2")
    kept = "".join(line.text for line in streams.source(PROCESS).lines())
    for text in (out.getvalue(), kept):
        assert "failed with" in text
        assert "ValueError" in text
        assert "hunter2" not in text
        assert "aHVudGVyMg" not in text


def test_a_traceback_is_text_without_local_variables() -> None:
    out = io.StringIO()
    configure(out=out)
    inside = "what a local variable holds"
    try:
        assert inside
        raise KeyError("gone")
    except KeyError as error:
        structlog.get_logger("x").error("failed", exc_info=error)
    (line,) = lines(out)
    assert "KeyError: 'gone'" in line["traceback"]
    assert "what a local variable holds" not in line["traceback"]
    assert "exc_info" not in line


def test_each_controller_has_a_stream_of_its_own() -> None:
    streams = LogStreams()
    configure(streams=streams, json=False)
    logger = structlog.get_logger("homeport.core")
    for controller in ("machine", "cluster"):
        with structlog.contextvars.bound_contextvars(controller=controller, object="default/a"):
            logger.info("seen by", who=controller)
    logger.info("by nobody")
    (line,) = streams.source("machine").lines()
    assert "seen by  controller=machine object=default/a who=machine" in line.text
    assert len(streams.source(PROCESS)) == 1


def test_levels_hold_by_logger() -> None:
    out = io.StringIO()
    configure(levels=parse_levels("warning, homeport.store=debug,homeport.store.watch=error"), out=out)
    for name in ("homeport.core", "homeport.store.row", "homeport.store.watch"):
        logger = structlog.get_logger(name)
        logger.debug("d")
        logger.warning("w")
    assert [(line["logger"], line["event"]) for line in lines(out)] == [
        ("homeport.core", "w"),
        ("homeport.store.row", "d"),
        ("homeport.store.row", "w"),
    ]


def test_an_invalid_level_is_refused() -> None:
    assert parse_levels("") == Levels()
    with pytest.raises(ValueError, match="log level 'homeport=loud': must be one of debug, info"):
        parse_levels("homeport=loud")


def test_lines_of_libraries_come_the_same_way() -> None:
    out = io.StringIO()
    configure(out=out)
    logging.getLogger("asyncio").warning("slow %s token=%s", "callback", "hunter2")
    logging.getLogger("asyncio").info("not this")
    (line,) = lines(out)
    assert (line["logger"], line["level"], line["event"]) == ("asyncio", "warning", "slow callback token=[redacted]")


def test_people_get_a_line_they_can_read() -> None:
    fields = {"time": "2026-01-01T12:34:56.1Z", "level": "info", "logger": "x", "event": "waiting", "n": 1, "m": "a b"}
    assert render_text(fields) == '12:34:56 info     waiting  n=1 m="a b"'
    assert render_text({**fields, "traceback": "T"}).endswith("\nT")
    assert "\x1b[32minfo" in render_colour(fields)
    assert render_text({**fields, "m": "one\ntwo\x1b[31m"}).count("\n") == 0, "nobody can fake a line or a colour"


def test_a_closed_terminal_stops_nothing() -> None:
    out, streams = io.StringIO(), LogStreams()
    configure(out=out, streams=streams)
    out.close()
    logger = structlog.get_logger("x")
    logger.info("one")
    logger.info("two")
    assert len(streams.source(PROCESS)) == 2


def test_times_are_right_across_seconds() -> None:
    assert log._moment(1_767_225_600.25) == "2026-01-01T00:00:00.250000Z"
    assert log._moment(1_767_225_601.0) == "2026-01-01T00:00:01.000000Z"
    assert log._moment(1_767_225_600.5) == "2026-01-01T00:00:00.500000Z"


def test_a_plane_logs_without_importing_rich() -> None:
    program = (
        "from homeport.app.log import configure, import_structlog; import_structlog();"
        "import sys, structlog; configure(level='info'); structlog.get_logger('x').info('hello', n=1);"
        "sys.exit('rich' in sys.modules or 'pygments' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert json.loads(done.stderr)["event"] == "hello"
    assert importable("rich"), "it only was left out, not broken"


@pytest.mark.parametrize("verb", ["up", "status", "create"])
def test_commands_start_without_importing_rich(verb: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "homeport", verb, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "homeport.cli.main" in imported
    assert not {"rich.console", "pygments"} & imported


def importable(name: str) -> bool:
    program = f"from homeport.app.log import import_structlog; import_structlog(); import {name}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=30).returncode == 0
