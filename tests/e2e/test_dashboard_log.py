"""A log without end in the dashboard, in a browser that has no SharedWorker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, WebSocketRoute, expect

from e2e.browsing import MARKS, Site, log_in, start

pytestmark = MARKS
AT_ONCE = 200  # lines of a message
MOST_HEAP = 50 * 1024 * 1024


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[Site]:
    made = start(tmp_path_factory.mktemp("log"), kubectl, "--no-workloads")
    yield made
    made.stop()


@pytest.mark.parametrize(("lines", "length"), [(110_000, 100), (20_000, 3_000)])
def test_a_log_without_end_stays_small(site: Site, browser: Browser, lines: int, length: int) -> None:
    visit = log_in(browser, site.link())
    streams: list[tuple[WebSocketRoute, int]] = []

    def relay(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def asked(message: str | bytes) -> None:
            found = json.loads(message)
            if found.get("open") == "log":
                streams.append((socket, found["id"]))  # the server is not asked
            else:
                server.send(message)

        socket.on_message(asked)

    visit.page.context.add_init_script("delete globalThis.SharedWorker")
    visit.page.route_web_socket("**/dashboard/stream", relay)
    visit.page.reload()
    visit.go("#/logs?pod=homeport-system/homeport&container=machine")
    log = visit.page.get_by_role("log")
    expect(log).to_contain_text("no lines yet")
    expect(visit.page.locator(".link")).to_have_text("live")
    socket, number = streams[-1]
    for first in range(0, lines, AT_ONCE):
        made = [f"{n} ".ljust(length, "x") for n in range(first, first + AT_ONCE)]
        socket.send(json.dumps({"id": number, "lines": made, "first": False}))
    expect(log).to_contain_text(f"{lines - 1} x", timeout=60_000)  # it follows, however fast they come
    assert log.locator(".line").count() <= 100
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("HeapProfiler.collectGarbage")
    assert session.send("Runtime.getHeapUsage")["usedSize"] < MOST_HEAP
    visit.page.context.close()
