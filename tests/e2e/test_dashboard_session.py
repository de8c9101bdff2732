"""How long a browser stays logged in: as long as somebody looks at a page of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from e2e.browsing import MARKS, Visit, log_in
from homeport.client.kubeconfig import load
from homeport.dashboard import login
from homeport.dashboard.session import IDLE_SECONDS, Session
from unit.dashboard.stage import Stage, open_stage

pytestmark = MARKS
# A minute of the page takes a moment.
QUICK = """
const real = globalThis.setInterval;
globalThis.setInterval = (work, pause, ...more) => real(work, pause === 60000 ? 50 : pause, ...more);
"""
HIDDEN = "Object.defineProperty(document, 'hidden', { get: () => true });"
ALONE = "delete globalThis.SharedWorker;"


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """In a thread of its own: playwright has that of the test."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


@pytest.fixture
def stage(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> Iterator[Stage]:
    opened = open_stage(tmp_path)
    yield asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(60)
    asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(60)


def opened(
    stage: Stage, browser: Browser, tmp_path: Path, loop: asyncio.AbstractEventLoop, script: str
) -> tuple[Visit, Session]:
    """A page, and its session, which is the newest."""
    coming = login.log_in(load(tmp_path / "config"), stage.address)
    link, _ = asyncio.run_coroutine_threadsafe(coming, loop).result(60)
    visit = log_in(browser, link)
    visit.page.add_init_script(QUICK + script)
    visit.page.reload()
    expect(visit.page.locator(".link")).to_have_text("live")
    return visit, list(stage.sessions)[-1]


@pytest.mark.parametrize("script", ["", ALONE], ids=["with a worker for all tabs", "without"])
def test_a_page_that_is_only_looked_at_stays_logged_in(
    stage: Stage, browser: Browser, tmp_path: Path, loop: asyncio.AbstractEventLoop, script: str
) -> None:
    visit, session = opened(stage, browser, tmp_path, loop, script)
    for _ in range(3):
        stage.clock.now += IDLE_SECONDS - 1
        while session.seen < stage.clock.now:  # the time limit of the test ends it
            visit.page.wait_for_timeout(20)
        loop.call_soon_threadsafe(stage.sessions.sweep)
    visit.go("#/kinds/core/namespaces")
    expect(visit.page.get_by_role("table")).to_contain_text("kube-system")
    assert session.why == ""
    visit.page.context.close()


def test_a_page_that_is_hidden_is_logged_out_after_an_hour_and_says_so(
    stage: Stage, browser: Browser, tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    visit, _ = opened(stage, browser, tmp_path, loop, HIDDEN)
    stage.clock.now += IDLE_SECONDS + 1
    loop.call_soon_threadsafe(stage.sessions.sweep)
    expect(visit.page.get_by_role("alert")).to_contain_text("an hour passed without use")
    visit.page.context.close()
