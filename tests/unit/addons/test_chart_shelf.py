"""Charts that the plane keeps in memory: a private one is only for those who have its credentials."""

from __future__ import annotations

import base64
import http.server
import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from homeport.addons.chart.shelf import Shelf
from homeport.addons.desired import DesiredChart
from homeport.addons.problem import Problem
from homeport.addons.source import SECRET
from homeport.api.addon.v1alpha1 import ChartSource, NameRef
from homeport.capi.chartsettings import ChartSettings
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import plane


@contextmanager
def repository() -> Iterator[str]:
    """A chart repository that wants a password."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        content = b"apiVersion: v2\nname: buoy\nversion: 1.0.0\n"
        info = tarfile.TarInfo("buoy/Chart.yaml")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    known = f"Basic {base64.b64encode(b'me:hidden').decode()}"
    index = b"entries:\n  buoy:\n  - {version: 1.0.0, urls: [buoy-1.0.0.tgz]}\n"

    class Asked(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers.get("Authorization") == known
            body = (index if self.path.endswith("index.yaml") else made.getvalue()) if allowed else b""
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def secret(password: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login", "namespace": "default"},
        "stringData": {"username": "me", "password": password},
    }


def wanted(url: str, credentials: str = "") -> DesiredChart:
    ref = NameRef(name=credentials) if credentials else None
    source = ChartSource(repository=url, name="buoy", credentials_ref=ref, insecure_http=True)
    return DesiredChart(source, "1.0.0", "buoy", {})


async def test_a_private_chart_is_not_given_to_somebody_without_its_credentials() -> None:
    with repository() as url:
        async with plane() as p:
            await p.have(secret("hidden"))
            shelf = Shelf(p.client, ChartSettings())
            assert "Chart.yaml" in await shelf.fetch(wanted(url, "login"), "default")
            with pytest.raises(Problem, match="it needs credentials, and none were given"):
                await shelf.fetch(wanted(url), "default")
            with pytest.raises(Problem, match="Secret other/login does not exist"):
                await shelf.fetch(wanted(url, "login"), "other")


async def test_credentials_that_change_are_asked_again() -> None:
    with repository() as url:
        async with plane() as p:
            shelf = Shelf(p.client, ChartSettings())
            await p.have(secret("wrong"))
            with pytest.raises(Problem, match="the credentials were refused") as refused:
                await shelf.fetch(wanted(url, "login"), "default")
            assert "wrong" not in str(refused.value)
            await p.client.patch(SECRET, Key("default", "login"), MergePatch(secret("hidden")))
            await shelf.fetch(wanted(url, "login"), "default")
            await p.client.patch(SECRET, Key("default", "login"), MergePatch(secret("wrong")))
            with pytest.raises(Problem, match="the credentials were refused"):
                await shelf.fetch(wanted(url, "login"), "default")


async def test_files_of_the_plane_are_no_charts() -> None:
    async with plane() as p:
        with pytest.raises(Problem, match="expected an address that begins with https://"):
            await Shelf(p.client, ChartSettings()).fetch(wanted("file:///etc"), "default")
