"""Requests for charts: redirects, plain HTTP, and limits, against servers on loopback."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from homeport.client.dial import DialOptions
from homeport.helm.errors import SourceError
from homeport.helm.source.credential import Credential, Credentials
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import ChartSource
from homeport.helm.source.wire import Trust, Wire

Handler = type[http.server.BaseHTTPRequestHandler]
PLAIN = Trust(plain_http=True)


class Server:
    def __init__(self, answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> None:
        self.seen: list[tuple[str, str | None]] = []
        outer = self

        class Asked(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append((self.path, self.headers.get("Authorization")))
                answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def serving(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[Server]:
    made = Server(answer)
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()


def ok(content: bytes = b"fine") -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    return answer


def to(target: str) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", target)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


async def test_a_redirect_to_another_host_goes_without_credentials() -> None:
    with ExitStack() as stack:
        other = stack.enter_context(serving(ok()))
        first = stack.enter_context(serving(to(f"{other.url}/elsewhere?signature=1")))
        async with Wire(PLAIN) as wire:
            reply = await wire.get(f"{first.url}/x", {"Authorization": "Basic hidden"})
    assert reply.body == b"fine"
    assert first.seen == [("/x", "Basic hidden")]
    assert other.seen == [("/elsewhere?signature=1", None)]


async def test_a_redirect_on_the_same_host_keeps_credentials() -> None:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        (to("/y") if request.path == "/x" else ok())(request)

    with serving(answer) as server:
        async with Wire(PLAIN) as wire:
            await wire.get(f"{server.url}/x", {"Authorization": "Basic hidden"})
    assert server.seen == [("/x", "Basic hidden"), ("/y", "Basic hidden")]


async def test_redirects_have_an_end() -> None:
    with serving(to("/again")) as server:
        async with Wire(PLAIN) as wire:
            with pytest.raises(SourceError, match="more than 10 redirects"):
                await wire.get(f"{server.url}/x")


async def test_plain_http_is_used_only_if_it_is_allowed() -> None:
    with serving(ok()) as server:
        async with Wire(Trust()) as wire:
            with pytest.raises(SourceError, match="plain HTTP is not used unless it is allowed"):
                await wire.get(f"{server.url}/x")
    assert server.seen == []


async def test_an_answer_that_is_too_large_is_cut_off() -> None:
    with serving(ok(b"x" * 100_000)) as server:
        async with Wire(PLAIN) as wire:
            with pytest.raises(SourceError, match="larger than"):
                await wire.get(f"{server.url}/x", limit=50_000)


async def test_a_host_that_does_not_answer_is_worth_another_try() -> None:
    with serving(ok()) as server:
        gone = server.url
    async with Wire(PLAIN) as wire:
        with pytest.raises(SourceError, match="connection refused") as refused:
            await wire.get(f"{gone}/x?token=hidden")
    assert refused.value.transient
    assert "hidden" not in str(refused.value)


async def test_a_repository_that_keeps_archives_elsewhere_does_not_pass_its_password_on() -> None:
    with ExitStack() as stack:
        other = stack.enter_context(serving(ok(b"no archive")))
        index = f"entries:\n  buoy:\n  - version: 1.0.0\n    urls: ['{other.url}/buoy-1.0.0.tgz']\n"
        first = stack.enter_context(serving(ok(index.encode())))
        source = ChartSource(Credentials({"": Credential("me", "hidden")}), PLAIN)
        with pytest.raises(SourceError, match="expected a gzip-compressed tar file"):
            await source.fetch(ChartLocation(repository=first.url, chart="buoy"))
    assert first.seen[0][1] is not None
    assert other.seen == [("/buoy-1.0.0.tgz", None)]


async def test_an_archive_that_does_not_fit_the_index_is_refused() -> None:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        index = f"entries:\n  buoy:\n  - version: 1.0.0\n    digest: {'a' * 64}\n    urls: [buoy-1.0.0.tgz]\n"
        ok(index.encode() if request.path.endswith("index.yaml") else b"other")(request)

    named = pytest.raises(SourceError, match=r"but the index names sha256:aaa.*do not install it")
    with serving(answer) as server, named:
        await ChartSource(trust=PLAIN).fetch(ChartLocation(repository=server.url, chart="buoy"))


async def test_a_page_that_is_not_a_repository_is_recognized() -> None:
    with serving(ok(b"<html></html>")) as server:
        with pytest.raises(SourceError, match="is not a chart index"):
            await ChartSource(trust=PLAIN).fetch(ChartLocation(repository=server.url, chart="buoy"))
        host = server.url.removeprefix("http://")
        with pytest.raises(SourceError, match="is this the address of a registry"):
            await ChartSource(trust=PLAIN).fetch(ChartLocation(oci=f"oci://{host}/buoy"))


@pytest.mark.parametrize("host", ["evil.example.com", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]", "0.0.0.0"])
async def test_an_address_of_somebody_without_rights_never_leads_to_this_machine(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookup = socket.getaddrinfo

    def resolve(name: str, *rest: object, **more: object) -> object:
        return lookup("127.0.0.1" if name == "evil.example.com" else name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with serving(ok()) as server:
        url = f"http://{host}:{server.server.server_address[1]}/index.yaml"
        async with Wire(Trust(plain_http=True, outside=True)) as wire:
            with pytest.raises(SourceError, match="is the management plane's own host or network"):
                await wire.get(url)
        assert server.seen == []


async def test_a_proxy_on_this_machine_is_not_what_the_address_names() -> None:
    with serving(ok(b"through the proxy")) as proxy:
        dial = DialOptions(proxy=proxy.url.replace("127.0.0.1", "localhost"))
        async with Wire(Trust(plain_http=True, outside=True, dial=dial)) as wire:
            assert (await wire.get("http://charts.example.com/index.yaml")).body == b"through the proxy"
        redirect = Trust(plain_http=True, outside=True, dial=dial)
    with serving(to("http://127.0.0.1:1/secret")) as proxy:
        dial = DialOptions(proxy=proxy.url)
        async with Wire(replace(redirect, dial=dial)) as wire:
            with pytest.raises(SourceError, match="own host or network"):
                await wire.get("http://charts.example.com/index.yaml")
