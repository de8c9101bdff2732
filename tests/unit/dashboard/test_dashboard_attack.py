"""What a hostile page, a broken client or strange content can't do to the dashboard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from homeport.api.meta import Resource
from homeport.client.config import Impersonation
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key
from homeport.dashboard.login import log_in
from homeport.dashboard.session import IDLE_SECONDS, LONGEST_SECONDS
from homeport.dashboard.wire.stream import MOST_STREAMS, MOST_TOPICS
from unit.dashboard.stage import ACCOUNTS, BINDING, BINDINGS, Stage, open_stage, receive, sailor

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
ROWS = {"open": "rows", "with": {"group": "", "plural": "configmaps", "namespace": "default", "columns": []}}
LIST = {"method": "GET", "path": "/api/v1/namespaces/default/configmaps"}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "nonsense",
        "null",
        "7",
        '"text"',
        "[]",
        "{}",
        '{"id": null}',
        '{"id": "x", "open": "rows"}',
        '{"id": [1], "open": "rows"}',
        '{"id": 1e400, "open": "rows"}',
        '{"id": 1.5e308, "open": "rows"}',
        '{"id": true, "open": "rows"}',
        '{"id": 7}',
        '{"id": 7, "open": {"a": 1}}',
        '{"id": 7, "open": "rows", "with": [1, 2]}',
        '{"id": 7, "open": "rows", "with": {"columns": "all"}}',
        '{"id": 7, "open": "rows", "with": {"columns": [[["x"]]]}}',
        '{"id": 7, "open": "log", "with": {"namespace": "../..", "pod": "../../secrets"}}',
        '{"id": 7, "open": "__init__"}',
        "[" * 100_000,
        '{"id": 7, "close": "yes"}',
    ],
)
async def test_a_malformed_frame_costs_the_browser_nothing_else(stage: Stage, frame: str) -> None:
    socket = await stage.connect()
    await socket.send_str(frame)
    await socket.send_bytes(b"\x00\xff")
    await socket.send_json({"id": 8, **ROWS})
    assert (await receive(socket, 8))["first"] is True
    await socket.close()


ODD: list[Any] = [
    7,
    -1.5,
    True,
    [],
    ["default"],
    {"a": 1},
    "../../..",
    "a/b",
    "%2e%2e%2f",
    "default?watch=1#",
    "a\r\nX: y",
    "\u0000",
    "\u202e",
    "\ud83d\ude00",
    "-",
    "x" * 20_000,
]
OPTIONS = {
    "rows": ("group", "plural", "namespace", "columns"),
    "overview": ("namespace",),
    "tree": ("namespace", "name", "kind"),
    "timeline": ("namespace", "about", "objects"),
    "log": ("namespace", "pod", "container", "text"),
    "console": ("namespace", "machine"),
}


@pytest.mark.parametrize(("topic", "option"), [(topic, option) for topic in OPTIONS for option in OPTIONS[topic]])
async def test_odd_options_of_a_subscription_have_an_answer(stage: Stage, topic: str, option: str) -> None:
    socket = await stage.connect()
    plain = {"plural": "configmaps", "namespace": "default", "pod": "p", "machine": "m", "name": "c", "about": "c"}
    for number, value in enumerate(ODD):
        await socket.send_json({"id": number, "open": topic, "with": {**plain, option: value}})
        answer = await receive(socket, number)
        assert "the dashboard failed" not in str(answer.get("error")), (value, answer)
        assert len(json.dumps(answer)) < 100_000
        await socket.send_json({"id": number, "close": True})
    await socket.close()


async def test_a_frame_that_grows_when_it_is_unpacked_ends_its_own_connection(stage: Stage) -> None:
    socket = await stage.http.ws_connect(f"{stage.address}stream", headers=stage.headers, compress=15)
    await socket.send_json({"key": stage.key})
    assert await socket.receive_json(timeout=30) == {"hello": True}
    await socket.send_str(" " * 20_000_000)
    await socket.receive(timeout=30)
    assert socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_streams_by_the_hundred_are_refused(stage: Stage) -> None:
    streams = [await stage.connect() for _ in range(MOST_STREAMS)]
    more = await stage.http.ws_connect(f"{stage.address}stream", headers=stage.headers)
    await more.send_json({"key": stage.key})
    assert (await more.receive(timeout=30)).type is aiohttp.WSMsgType.CLOSE
    assert more.close_code == 4429
    await streams[0].send_json({"id": 1, **ROWS})
    assert (await receive(streams[0], 1))["first"] is True
    for each in streams:
        await each.close()
    await (await stage.connect()).close()


async def test_a_plane_at_another_port_has_a_cookie_of_its_own(stage: Stage, tmp_path: Path) -> None:
    """Browsers send cookies to every port of a host: with one name, who logs in there is logged out here."""
    async with open_stage(tmp_path / "other") as other:
        both = {"Cookie": f"{stage.cookie}; {other.cookie}"}
        for each in (stage, other):
            assert (await each.ask(LIST, **both))[0] == 200
        assert (await stage.ask(LIST, Cookie=other.cookie))[0] == 401


async def test_a_frame_that_is_too_large_ends_its_own_connection_alone(stage: Stage) -> None:
    other = await stage.connect()
    socket = await stage.connect()
    await socket.send_str("x" * 1_000_000)
    closed = await socket.receive(timeout=30)
    assert closed.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    assert socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
    await other.send_json({"id": 1, **ROWS})
    assert (await receive(other, 1))["first"] is True
    await other.close()


async def test_a_socket_without_the_key_gets_nothing(stage: Stage) -> None:
    for first in ("{}", "nonsense", json.dumps({"key": "x"}), json.dumps({"key": [stage.key]})):
        socket = await stage.http.ws_connect(f"{stage.address}stream", headers=stage.headers)
        await socket.send_str(first)
        assert (await socket.receive(timeout=30)).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 4401


async def test_a_socket_from_another_origin_is_refused(stage: Stage) -> None:
    for origin in ("http://evil.example", "null", ""):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stage.http.ws_connect(f"{stage.address}stream", headers={**stage.headers, "Origin": origin})
        assert refused.value.status == 403


async def test_subscriptions_by_the_thousand_are_refused_and_end_with_the_connection(stage: Stage) -> None:
    socket = await stage.connect()
    for number in range(2_000):
        await socket.send_json({"id": number, **ROWS})
    refused = await receive(socket, 1_999)
    assert f"at most {MOST_TOPICS} subscriptions" in refused["error"]
    await socket.send_json({"id": 0, "close": True})
    await socket.send_json({"id": 5_000, **ROWS})
    assert (await receive(socket, 5_000))["first"] is True
    await socket.close()


async def test_a_reader_that_stops_reading_holds_up_nobody_else(stage: Stage) -> None:
    lazy = await stage.connect()
    for number in range(MOST_TOPICS):
        await lazy.send_json({"id": number, **ROWS})
    socket = await stage.connect()
    await socket.send_json({"id": 1, **ROWS})
    await receive(socket, 1)
    for number in range(200):
        body = {"metadata": {"name": f"made-{number}", "namespace": "default"}}
        await stage.client.create(body, kind=CONFIGMAPS)
    seen: set[str] = set()
    while len(seen) < 200:
        seen |= {row[2] for row in (await receive(socket, 1))["rows"] if row[2].startswith("made-")}
    await socket.close()
    await lazy.close()


async def test_large_annotations_do_not_reach_a_table(stage: Stage) -> None:
    body = {"metadata": {"name": "fat", "namespace": "default", "annotations": {"example.com/fat": "x" * 200_000}}}
    await stage.client.create(body, kind=CONFIGMAPS)
    socket = await stage.connect()
    columns = [["metadata", "annotations"], ["metadata", "annotations", "example.com/fat"], "@state"]
    await socket.send_json({"id": 1, "open": "rows", "with": {**ROWS["with"], "columns": columns}})  # type: ignore[dict-item]
    message = await receive(socket, 1)
    assert [row[2] for row in message["rows"]].count("fat") == 1
    assert len(json.dumps(message)) < 20_000
    await socket.close()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/../../metrics",
        "/api/v1/%2e%2e/%2e%2e/metrics",
        "/api/v1/..%2f..%2fmetrics",
        "/api/v1\\..\\metrics",
        "/api/v1/./secrets",
        "/api//v1/secrets",
        "//evil.example/api/v1/secrets",
        "/\\evil.example/api/v1",
        "http://169.254.169.254/api/v1",
        "/api/v1/secrets?watch=1",
        "/api/v1/secrets?watch",
        "/api/v1/secrets?a=b&watch=true",
        "/api/v1/secrets?%77atch=true",
        "/api/v1/namespaces/a/pods/b/%65xec",
        "/api/v1/secrets HTTP/1.1\r\nX: y",
        "/api/v1/secr\u202eets",
        "/api/v1/secrets#?watch=1\n",
        "/dashboard/session",
    ],
)
async def test_odd_paths_are_not_forwarded(stage: Stage, path: str) -> None:
    status, text = await stage.ask({"method": "GET", "path": path})
    assert status == 400, text
    assert (await stage.ask(LIST))[0] == 200


@pytest.mark.parametrize(
    "body",
    [[], "text", {"method": "GET"}, {"method": 1, "path": "/api"}, {**LIST, "headers": {"Impersonate-User": "root"}}],
)
async def test_a_forwarded_request_is_what_the_page_can_send_and_no_more(stage: Stage, body: Any) -> None:
    assert (await stage.ask(body))[0] == 400


async def test_requests_that_are_too_large_are_refused(stage: Stage) -> None:
    parts = urlsplit(stage.address)
    known = "".join(f"{name}: {value}\r\n" for name, value in stage.headers.items())
    head = f"POST /dashboard/request HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n{known}"
    assert b" 413 " in await stage.send(f"{head}Content-Length: 5000000\r\n\r\n".encode())


@pytest.mark.parametrize(
    "cookie",
    [
        "homeport-dashboard=\xff\xfe",
        "homeport-dashboard",
        "=;=;;;",
        'homeport-dashboard="unclosed',
        "a[b]=c; homeport-dashboard=x",
        "x" * 7_000,
    ],
)
async def test_broken_cookies_are_nobody(stage: Stage, cookie: str) -> None:
    parts = urlsplit(stage.address)
    cookie = cookie.replace("homeport-dashboard", stage.cookie.partition("=")[0])
    head = (
        f"GET /dashboard/session HTTP/1.1\r\nHost: {parts.netloc}\r\nX-Homeport-Key: \xff\r\nCookie: {cookie}\r\n\r\n"
    )
    assert b" 401 " in await stage.send(head.encode("latin-1"))


@pytest.mark.parametrize(
    "more",
    [
        "Host: evil.example\r\n",
        "Origin: http://evil.example\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "X-Homeport-Key: y\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Bad Header: x\r\n",
    ],
)
async def test_headers_that_two_servers_could_read_differently_are_refused(stage: Stage, more: str) -> None:
    parts = urlsplit(stage.address)
    known = "".join(f"{name}: {value}\r\n" for name, value in stage.headers.items())
    head = f"GET /dashboard/session HTTP/1.1\r\nHost: {parts.netloc}\r\nSec-Fetch-Site: same-origin\r\n{known}"
    assert b" 200 " in await stage.send(f"{head}\r\n".encode())
    status = await stage.send(f"{head}{more}\r\n".encode())
    assert status.split()[1] in (b"400", b"403"), status


async def test_a_file_outside_of_the_page_is_not_served(stage: Stage) -> None:
    parts = urlsplit(stage.address)
    for path in ("../page.py", "..%2fpage.py", "%2e%2e/page.py", "static/../../page.py", "/etc/passwd", "app.js%00.py"):
        head = f"GET /dashboard/{path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
        assert b" 404 " in await stage.send(head.encode())


async def test_who_acts_as_somebody_else_is_somebody_else_here_too(stage: Stage, tmp_path: Path) -> None:
    config = replace(load(tmp_path / "config"), impersonate=Impersonation(user="jane", groups=("quay",)))
    _, user = await log_in(config, stage.address)
    assert user == "jane"


async def test_a_page_in_view_keeps_its_session_and_an_open_stream_alone_does_not(stage: Stage) -> None:
    """The page reports each minute that it is in view; one that is hidden, or in another tab, does not."""
    socket = await stage.connect()
    hours = int(LONGEST_SECONDS / IDLE_SECONDS) - 1
    for number in range(hours):
        stage.clock.now += IDLE_SECONDS - 60
        await socket.send_json({"seen": True})
        await socket.send_json({"id": number, **ROWS})  # answered after it
        await receive(socket, number)
        await socket.send_json({"id": number, "close": True})
    assert (await stage.ask(LIST))[0] == 200
    stage.clock.now += IDLE_SECONDS - 60
    await socket.send_json({"id": hours, **ROWS})
    await receive(socket, hours)
    stage.clock.now += 120
    assert (await stage.ask(LIST))[0] == 401
    while (await socket.receive(timeout=30)).type is aiohttp.WSMsgType.TEXT:
        pass
    assert socket.close_code == 4401


async def test_a_page_in_view_is_logged_out_after_twelve_hours_all_the_same(stage: Stage) -> None:
    socket = await stage.connect()
    stage.clock.now += LONGEST_SECONDS + 1
    await socket.send_json({"seen": True})
    await socket.send_json({"id": 8, **ROWS})
    await receive(socket, 8)
    assert (await stage.ask(LIST))[0] == 401
    await socket.close()


REVOKED = "the API server no longer accepts your credential"
SAILOR = Key("default", "sailor")


async def test_a_request_with_a_revoked_token_ends_the_session(stage: Stage, tmp_path: Path) -> None:
    sailing = await sailor(stage, tmp_path)
    assert (await sailing.ask(LIST))[0] == 200
    await stage.client.delete(ACCOUNTS, SAILOR)
    assert REVOKED in (await sailing.ask(LIST))[1]
    status, text = await sailing.ask(LIST)
    assert (status, REVOKED in text) == (401, False)  # there is no such session any more
    assert (await stage.ask(LIST))[0] == 200  # others have theirs


async def test_an_open_stream_of_a_revoked_token_is_closed_and_says_why(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeport.dashboard.right.CHECK_SECONDS", 0.1)
    sailing = await sailor(stage, tmp_path)
    socket = await sailing.connect()
    await socket.send_json({"id": 1, **ROWS})
    await receive(socket, 1)
    await stage.client.delete(ACCOUNTS, SAILOR)
    async with asyncio.timeout(30):
        while (message := await socket.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
    assert (socket.close_code, message.extra) == (4401, REVOKED)


async def test_a_right_that_comes_and_goes_is_told_also_where_there_is_nothing_to_see(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeport.dashboard.right.CHECK_SECONDS", 0.1)
    sailing = await sailor(stage, tmp_path)
    socket = await sailing.connect()
    empty = {"group": "", "plural": "limitranges", "namespace": "default", "columns": []}
    await socket.send_json({"id": 1, "open": "rows", "with": empty})
    assert (await receive(socket, 1))["problem"] == ""
    await stage.client.delete(BINDINGS, Key("", "sailor"))
    assert (await receive(socket, 1))["problem"] == "you may not watch limitranges in namespace default"
    await stage.client.create(BINDING, kind=BINDINGS)
    assert (await receive(socket, 1))["problem"] == ""
    await socket.close()
