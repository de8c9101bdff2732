"""A browser, and a plane that serves it the dashboard."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, expect, sync_playwright

from e2e.cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "ui" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 30_000.0  # milliseconds: machines that run tests are busy
expect.set_options(timeout=PATIENCE)
MARKS = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH (tools/browser/install)"),
    pytest.mark.skipif(not AXE.exists(), reason="the packages of ui/ are not installed (tools/browser/install)"),
    pytest.mark.timeout(300),
]


def homeport(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "homeport", *args], capture_output=True, text=True, timeout=120, check=False
    )


@dataclass
class Site:
    """A plane, with the kubectl of its administrator."""

    data: Path
    kubectl: Cluster

    def link(self, *options: str) -> str:
        done = homeport("dashboard", *(options or ("--data", str(self.data))))
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[0]

    def stop(self) -> None:
        stopped = homeport("down", "--data", str(self.data))
        assert stopped.returncode == 0, stopped.stdout + stopped.stderr


def start(folder: Path, kubectl: str, *options: str) -> Site:
    """A plane with simulators, at a port of its own."""
    data = folder / "data"
    started = homeport("up", "--sim", "--data", str(data), "--listen", "127.0.0.1:0", *options, "--detach")
    assert started.returncode == 0, started.stdout + started.stderr
    assert "homeport dashboard" in started.stdout
    return Site(data, Cluster("ours", kubectl, data / "kubeconfig", folder))


def lasting_port() -> int:
    """A free one, with the next also free, that no connection of others takes while the plane is down."""
    for _ in range(100):
        port = random.randrange(20_000, 32_000)  # below those that systems give to connections
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 1))
            return port
    pytest.fail("no free port from 20000 to 32000")


def example(name: str, address: str) -> str:
    """The manifest of a Nutanix cluster: three control planes and two workers."""
    text = (ROOT / "examples/02-cluster/cluster.yaml").read_text()
    return text.replace("10.0.0.101", address).replace("harbour", name)


@contextmanager
def chromium(*switches: str) -> Iterator[Browser]:
    """Debian's, as CI has it."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=[*SWITCHES, *switches])
        yield made
        made.close()


@dataclass
class Visit:
    """A logged-in page, and everything that its console complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    answers: list[tuple[int, str]] = field(default_factory=list)

    def go(self, address: str) -> None:
        self.page.evaluate("address => { location.hash = address }", address)

    def text(self, selector: str = "main") -> str:
        return self.page.inner_text(selector)


def status_of(answer: Response) -> int:
    """That of the API server, where the page asked it for something."""
    return int(answer.headers.get("x-homeport-status") or answer.status)


def asked_of(answer: Response) -> str:
    return f"{answer.url} {answer.request.post_data or ''}"[:300]


def log_in(browser: Browser, link: str, **options: Any) -> Visit:
    context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    visit = Visit(page)
    page.on("console", lambda said: visit.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.on("response", lambda answer: visit.answers.append((status_of(answer), asked_of(answer))))
    page.goto(link)
    page.wait_for_selector("main h1")
    return visit


def main_thread_tasks(trace: bytes) -> list[float]:
    """Milliseconds of processor time of each task that the main threads of pages finished in a trace of Chromium."""
    events = json.loads(trace)["traceEvents"]
    names = {(each["pid"], each["tid"]): each["args"].get("name") for each in events if each["name"] == "thread_name"}
    tasks = (each for each in events if each["name"] == "RunTask" and "tdur" in each)
    return [each["tdur"] / 1000 for each in tasks if names.get((each["pid"], each["tid"])) == "CrRendererMain"]
