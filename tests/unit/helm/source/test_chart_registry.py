"""Registries that were made to harm: credentials stay with the registry, and no answer is without end."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from homeport.helm.errors import SourceError
from homeport.helm.source.credential import Credential, Credentials, parse_docker
from homeport.helm.source.oci import CONFIG, CONTENT, INDEX
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import ChartSource
from homeport.helm.source.wire import Trust

PLAIN = Trust(plain_http=True, timeout_seconds=5.0)
Answer = tuple[int, dict[str, str], bytes]


class Host:
    """A server that answers by path; `asked` holds method, path, Authorization and body."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None, str]] = []
        self.routes: dict[str, Answer | Callable[[str | None, str], Answer]] = {}
        outer = self

        class Asked(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urllib.parse.urlsplit(self.path).path
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                authorization = self.headers.get("Authorization")
                outer.asked.append((self.command, path, authorization, body))
                found = outer.routes.get(path, (404, {}, b""))
                status, headers, content = found(authorization, body) if callable(found) else found
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}"

    def sent(self) -> str:
        return repr(self.asked)


@contextmanager
def hosts(count: int = 1) -> Iterator[list[Host]]:
    made = [Host() for _ in range(count)]
    threads = [threading.Thread(target=each.server.serve_forever) for each in made]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        for each, thread in zip(made, threads, strict=True):
            each.server.shutdown()
            thread.join()
            each.server.server_close()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@functools.cache
def archive() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        content = b"apiVersion: v2\nname: buoy\nversion: 1.0.0\n"
        info = tarfile.TarInfo("buoy/Chart.yaml")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def manifest(content: bytes, **more: Any) -> bytes:
    layer = {"mediaType": CONTENT[0], "digest": digest(content), "size": len(content), **more}
    return json.dumps({"config": {"mediaType": CONFIG}, "layers": [layer]}).encode()


def publish(host: Host, wrap: Callable[[Answer], Any] = lambda answer: answer) -> None:
    content = archive()
    host.routes["/v2/buoy/manifests/1.0.0"] = wrap((200, {}, manifest(content)))
    host.routes[f"/v2/buoy/blobs/{digest(content)}"] = wrap((200, {}, content))


def guarded(realm: str, token: str = "granted") -> Callable[[Answer], Any]:
    challenge = {"WWW-Authenticate": f'Bearer realm="{realm}",service="charts"'}

    def wrap(answer: Answer) -> Any:
        return lambda authorization, body: answer if authorization == f"Bearer {token}" else (401, challenge, b"")

    return wrap


def place(host: Host) -> ChartLocation:
    return ChartLocation(oci=f"oci://{host.host}/buoy:1.0.0")


def login(*hosts_: Host, **more: str) -> ChartSource:
    return ChartSource(Credentials({each.host: Credential("me", "hidden", **more) for each in hosts_}), PLAIN)


async def test_a_host_that_the_registry_redirects_to_can_not_ask_for_its_credentials() -> None:
    with hosts(3) as (registry, store, thief):
        registry.routes["/v2/buoy/manifests/1.0.0"] = (307, {"Location": f"{store.url}/blob"}, b"")
        store.routes["/blob"] = (401, {"WWW-Authenticate": f'Bearer realm="{thief.url}/token"'}, b"")
        thief.routes["/token"] = (200, {}, b'{"token": "x"}')
        with pytest.raises(SourceError, match="where it redirects to, wants credentials") as refused:
            await login(registry).fetch(place(registry))
    assert thief.asked == []
    assert "hidden" not in str(refused.value) + store.sent()


async def test_an_identity_token_is_exchanged_and_not_followed_elsewhere() -> None:
    with hosts(2) as (registry, thief):
        publish(registry, guarded(f"{registry.url}/token"))

        def exchange(authorization: str | None, body: str) -> Answer:
            form = dict(urllib.parse.parse_qsl(body))
            known = {"grant_type": "refresh_token", "refresh_token": "left-by-login", "service": "charts"}
            known["scope"] = "repository:buoy:pull"
            fits = authorization is None and known.items() <= form.items()
            return (200, {}, b'{"access_token": "granted"}') if fits else (401, {}, b"")

        registry.routes["/token"] = exchange
        auths = {registry.host: {"auth": base64.b64encode(b"<token>:").decode(), "identitytoken": "left-by-login"}}
        credentials = parse_docker("config.json", json.dumps({"auths": auths}).encode())
        assert "left-by-login" not in repr(credentials)
        source = ChartSource(credentials, PLAIN)
        assert (await source.fetch(place(registry))).version == "1.0.0"
        registry.routes["/token"] = (307, {"Location": f"{thief.url}/token"}, b"")
        with pytest.raises(SourceError, match="no token from") as refused:
            await source.fetch(place(registry))
    assert thief.asked == []
    assert "left-by-login" not in str(refused.value)


async def test_indexes_that_name_each_other_come_to_an_end() -> None:
    entry = {"artifactType": CONFIG, "mediaType": INDEX}
    inner = json.dumps({"manifests": [{**entry, "digest": "sha256:" + "a" * 64}]}).encode()
    with hosts() as (registry,):
        outer = json.dumps({"manifests": [{**entry, "digest": digest(inner)}]}).encode()
        registry.routes["/v2/buoy/manifests/1.0.0"] = (200, {}, outer)
        registry.routes[f"/v2/buoy/manifests/{digest(inner)}"] = (200, {}, inner)
        with pytest.raises(SourceError, match="an index of the registry names another index"):
            await ChartSource(trust=PLAIN).fetch(place(registry))
        looping = json.dumps({"manifests": [{**entry, "digest": "1.0.0"}]}).encode()
        registry.routes["/v2/buoy/manifests/1.0.0"] = (200, {}, looping)
        with pytest.raises(SourceError, match="an entry of its index has no valid digest"):
            await ChartSource(trust=PLAIN).fetch(place(registry))


@pytest.mark.parametrize(
    ("more", "message"),
    [({"size": 1 << 40}, "is larger than 100 MiB"), ({"size": 3}, "larger than"), ({"size": -1}, "no valid digest")],
)
async def test_the_size_of_a_layer_is_not_believed(more: dict[str, int], message: str) -> None:
    with hosts() as (registry,):
        publish(registry)
        registry.routes["/v2/buoy/manifests/1.0.0"] = (200, {}, manifest(archive(), **more))
        with pytest.raises(SourceError, match=message):
            await ChartSource(trust=PLAIN).fetch(place(registry))


async def test_content_with_another_digest_is_refused_and_not_kept(tmp_path: Path) -> None:
    with hosts() as (registry,):
        publish(registry)
        registry.routes[f"/v2/buoy/blobs/{digest(archive())}"] = (200, {}, archive()[:-1] + b"x")
        source = ChartSource(trust=PLAIN, cache=tmp_path / "cache")
        with pytest.raises(SourceError, match="it was changed on the way or in the registry"):
            await source.fetch(place(registry))
        assert not (tmp_path / "cache").exists()


async def test_an_archive_that_was_changed_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    with hosts() as (registry,):
        publish(registry)
        source = ChartSource(trust=PLAIN, cache=tmp_path / "cache")
        await source.fetch(place(registry))
        (kept,) = (tmp_path / "cache").iterdir()
        kept.write_bytes(b"poison")
        assert (await source.fetch(place(registry))).version == "1.0.0"
        assert kept.read_bytes() == archive()
        assert kept.stat().st_mode & 0o777 == 0o600


async def test_credentials_that_a_program_keeps_are_asked_for_in_words() -> None:
    with hosts() as (registry,):
        content = json.dumps({"auths": {registry.host: {}}, "credsStore": "desktop"}).encode()
        with pytest.raises(
            SourceError, match=r"kept by the program docker-credential-desktop, which can't be run here"
        ):
            await ChartSource(parse_docker("config.json", content), PLAIN).fetch(place(registry))
        assert registry.asked == []


async def test_a_chart_in_a_folder_has_no_path_for_a_name(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Chart.yaml").write_text("apiVersion: v2\nname: other\nversion: 1.0.0\n")
    (tmp_path / "charts").mkdir()
    for name in ("../other", "/etc/x", ".."):
        with pytest.raises(SourceError, match="a chart has a name, not a path"):
            await ChartSource().fetch(ChartLocation(path=str(tmp_path / "charts"), chart=name))


async def test_a_device_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is neither a file nor a folder"):
        await ChartSource().fetch(ChartLocation(path="/dev/zero"))
