"""Markers of the whole test tree, what `make test` leaves out, and guards: sockets stay on loopback, and none stays open."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings

from disk import wait_for_disks
from leftover import take_leftovers, watch_transports
from loopback import stay_on_loopback
from part import ALONE, PROGRAMS, part_of

__all__ = ["stay_on_loopback"]

# Images of containers often forbid bytecode. Without it each worker, and each `homeport` that a test starts, compiles
# every module anew: half of the time in which a plane starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

HERE = Path(__file__).parent
# How long one example takes depends on what else the machine does; the limit of each test catches what hangs.
settings.register_profile("homeport", deadline=None)
settings.load_profile("homeport")
# What takes long, by folder; a test in one of these that is marked `quick` runs all the same.
_LONG = {
    "scenario": "scenarios of whole platforms",
    "e2e": "real programs: kubectl, clusterctl, kube-apiserver",
    "seeds": "guides with kubectl, command by command",
    "fuzz": "fuzzing",
    "docs/commands": "commands of the documentation",
    "conformance/sdk": "vendors' SDKs",
    "conformance/helm": "real Helm and a real registry",
}
_LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what takes long; says at the end what that was")
    parser.addoption("--part", choices=(PROGRAMS, ALONE), help="only the modules that need programs, or all others")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance: one client suite on several API servers, a real one among them")
    config.addinivalue_line("markers", "e2e: drives Homeport with programs that others wrote")
    config.addinivalue_line("markers", "quick: runs with --quick, though its folder is left out")
    config.stash[_LEFT_OUT] = Counter()
    watch_transports()
    wait_for_disks()
    forget_configurations_of_logging()


def forget_configurations_of_logging() -> None:
    """Loggers would keep the first configuration with which they were used, beyond the test that made it."""
    configure = structlog.configure

    def configure_without_memory(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    structlog.configure = configure_without_memory  # type: ignore[assignment]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    part = config.getoption("--part")
    if part is None or not collection_path.match("test_*.py"):
        return None
    return part_of(collection_path) != part or None


def pytest_collection_finish() -> None:
    """What exists by now stays: looking through it again and again took a sixth of all the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    if leftovers := take_leftovers():
        pytest.fail("connections are still open at the end of the event loop: " + "; ".join(leftovers), pytrace=False)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command that runs within a test may configure logging: no other test sees that."""
    before = structlog.get_config()
    yield
    if structlog.get_config() != before:
        structlog.configure(**before)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--part") == ALONE:
        # The long ones last: at first builds take most of the processor, and each test has a limit of time.
        items.sort(key=lambda item: HERE / "scenario" in item.path.parents)
    if not config.getoption("--quick"):
        return
    left_out = [item for item in items if item.get_closest_marker("quick") is None and _why(item)]
    config.stash[_LEFT_OUT].update(_why(item) for item in left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def _why(item: pytest.Item) -> str:
    path = item.path.relative_to(HERE).as_posix() if HERE in item.path.parents else ""
    return next((why for part, why in _LONG.items() if path == part or path.startswith(f"{part}/")), "")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash[_LEFT_OUT]
    terminalreporter.write_line("")
    skipped = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in skipped.most_common():
        terminalreporter.write_line(f"{reason.removeprefix('Skipped: ')}: {count} tests")
    if not config.getoption("--quick"):
        return
    # With xdist each worker collects everything, and the main process nothing: the folders are told in any case.
    for why in dict.fromkeys(_LONG.values()):
        number = f": {left_out[why]} tests" if left_out[why] else ""
        terminalreporter.write_line(f"left out: {why}{number}")
    terminalreporter.write_line("run them with: make test-all")
