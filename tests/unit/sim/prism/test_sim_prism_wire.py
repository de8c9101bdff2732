"""Over TLS and HTTP: cookies, drops, the admin endpoint, and what the guides call with curl."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from homeport.runtime.clock import SystemClock
from homeport.sim.engine.credential import AdminCredential
from homeport.sim.engine.progress import Progress
from homeport.sim.engine.tls import Authority
from homeport.sim.prism.pace import Pace
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire
from unit.sim.prism.prism_caller import VMS, Caller


@dataclass
class WireServer:
    prism: Prism
    port: int
    admin: int
    ca: Path
    credential: AdminCredential

    async def ask(
        self, method: str, path: str, body: str = "", *, admin: bool = False, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """One request over a connection of its own, with nobody's HTTP library in between."""
        context = None if admin else ssl.create_default_context(cafile=str(self.ca))
        port = self.admin if admin else self.port
        if admin:
            headers.setdefault("Authorization", f"Bearer {self.credential.token}")
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=None if admin else "localhost"
        )
        lines = [f"{method} {path} HTTP/1.1", f"Host: {headers.pop('Host', 'localhost:9440')}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "Content-Type: application/json", "", body]
        writer.write("\r\n".join(lines).encode())
        try:
            raw = (await reader.read()).decode()
        except (ConnectionError, ssl.SSLError):
            return 0, {}, ""
        finally:
            writer.close()
        if not raw:
            return 0, {}, ""
        head, _, text = raw.partition("\r\n\r\n")
        first, *rest = head.split("\r\n")
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        return int(first.split()[1]), found, text


def basic(user: str = "admin", password: str = "password") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[WireServer]:
    prism = Prism()
    clock = SystemClock()
    authority = Authority.ensure(tmp_path / "pki", clock)
    wire = Wire(prism)
    port = await wire.start(tls=authority.context("server", ["localhost", "127.0.0.1"], clock))
    credential = AdminCredential.ensure(tmp_path)
    admin = await wire.start_admin(credential)
    yield WireServer(prism, port, admin, authority.path, credential)
    await wire.close()


async def test_a_session_cookie_stands_for_the_credentials(served: WireServer) -> None:
    path = "/api/nutanix/v3/users/me"
    status, headers, _ = await served.ask("GET", path, Authorization=basic())
    assert status == 200
    assert {"Secure", "HttpOnly", "Path=/"} <= set(headers["set-cookie"].split("; "))
    cookie = headers["set-cookie"].partition(";")[0]
    status, headers, text = await served.ask("GET", path, Cookie=cookie)
    assert (status, json.loads(text)["status"]["name"]) == (200, "admin")
    assert "set-cookie" not in headers
    served.prism.sessions.end_all()
    assert (await served.ask("GET", path, Cookie=cookie))[0] == 401
    assert (await served.ask("GET", path, Authorization=basic(password="wrong")))[0] == 401
    assert (await served.ask("GET", path, X_ntnx_api_key="homeport-api-key"))[0] == 200
    assert (await served.ask("GET", path, X_ntnx_api_key="no"))[0] == 401


async def test_a_dropped_connection_ends_without_an_answer(served: WireServer) -> None:
    body = "faults:\n- {match: {nth: 1}, effect: {kind: drop}}\n"
    assert (await served.ask("POST", "/faults", body, admin=True, Host="127.0.0.1:1"))[0] == 200
    assert (await served.ask("GET", VMS, Authorization=basic()))[0] == 0
    assert (await served.ask("GET", VMS, Authorization=basic()))[0] == 200


async def test_a_fault_that_is_set_later_meets_machines_that_run(served: WireServer) -> None:
    call = Caller(served.prism)
    ids = [await call.make(name, on=True) for name in ("web", "other")]
    body = "faults:\n- {match: {kind: vm, entity: web}, effect: {kind: crash}}\n"
    assert (await served.ask("POST", "/faults", body, admin=True, Host="127.0.0.1:1"))[0] == 200
    states = [(await call.vm(ext_id))[0]["powerState"] for ext_id in ids]
    assert states == ["OFF", "ON"]


async def test_an_encoded_path_and_query_mean_the_same(served: WireServer) -> None:
    call = Caller(served.prism)
    answer = await call.create("web 1")
    task = answer.body["data"]["extId"].replace("=", "%3D").replace(":", "%3A")
    assert (await served.ask("GET", f"/api/prism/v4.3/config/tasks/{task}", Authorization=basic()))[0] == 200
    _, _, text = await served.ask("GET", f"{VMS}?%24filter=name+eq+%27web+1%27", Authorization=basic())
    assert json.loads(text)["metadata"]["totalAvailableResults"] == 1


async def test_a_body_that_is_not_json_is_refused(served: WireServer) -> None:
    status, _, text = await served.ask("POST", "/api/nutanix/v3/vms/list", "{", Authorization=basic())
    assert status == 400
    assert "not valid JSON" in text


async def test_a_failure_of_the_simulator_itself_is_an_error_of_the_vendor(served: WireServer) -> None:
    served.prism.core.pace = None  # type: ignore[assignment]  # nothing that a client could do
    body = json.dumps(Caller(served.prism).vm_body("web"))
    status, _, text = await served.ask(
        "POST", VMS, body, Authorization=basic(), NTNX_Request_Id="7c1fd7f6-8b9a-4f55-9d0a-0f6c1d0b5b11"
    )
    assert (status, json.loads(text)["data"]["$objectType"]) == (500, "vmm.v4.error.ErrorResponse")


async def test_the_admin_endpoint_shows_and_changes_world_and_faults(served: WireServer) -> None:
    async def admin(method: str, path: str, body: str = "") -> tuple[int, str]:
        status, _, text = await served.ask(method, path, body, admin=True, Host="127.0.0.1:1")
        return status, text

    assert (await admin("GET", "/healthz"))[0] == 200
    status, world = await admin("GET", "/world")
    assert "nutanix-cluster-1" in world
    assert (await admin("PUT", "/world", world))[0] == 204
    status, text = await admin("PUT", "/world", "clusters: 1")
    assert (status, text) == (400, "the request:1: clusters: expected `array`, got `int`\n")
    assert (await admin("PUT", "/faults", "faults:\n- {name: f, effect: {kind: drop}}"))[0] == 200
    assert json.loads((await admin("GET", "/faults"))[1])[0]["fault"]["name"] == "f"
    assert (await admin("DELETE", "/faults/f"))[0] == 204
    assert (await admin("DELETE", "/faults/f"))[0] == 404
    await served.ask("GET", VMS, Authorization=basic())
    assert json.loads((await admin("GET", "/journal?limit=1"))[1])[0]["path"] == VMS
    served.prism.write_console("vm-1", "kernel panic")
    assert (await admin("GET", "/console/vm-1"))[1] == "kernel panic\n"
    assert (await admin("GET", "/elsewhere"))[0] == 404


async def test_the_admin_endpoint_answers_no_page_in_a_browser(served: WireServer) -> None:
    assert (await served.ask("GET", "/world", admin=True, Host="evil.example"))[0] == 403
    assert (await served.ask("GET", "/world", admin=True, Host="127.0.0.1:1", Origin="https://evil.example"))[0] == 403


async def test_the_world_advances_without_requests() -> None:
    booted = asyncio.Event()

    class Guests:
        def powered_on(self, machine: object) -> None:
            booted.set()

        def powered_off(self, ext_id: str, *, crashed: bool) -> None: ...

        def readdressed(self, ext_id: str, addresses: tuple[str, ...]) -> None: ...

        def removed(self, ext_id: str) -> None: ...

    prism = Prism(pace=Pace(boot=Progress(seconds=0.05)), guests=Guests())
    wire = Wire(prism)
    await wire.start()
    try:
        await Caller(prism).make("web", on=True)
        await asyncio.wait_for(booted.wait(), 5)
    finally:
        await wire.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("kind", ["clusters", "subnets", "images"])
async def test_the_curl_commands_of_the_guides_work_as_written(served: WireServer, kind: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "curl", "-sk", "--noproxy", "*", "--resolve", f"prism-central.example.com:{served.port}:127.0.0.1", "-u", "admin:password",
        f"https://prism-central.example.com:{served.port}/api/nutanix/v3/{kind}/list",
        "-H", "Content-Type: application/json", "-d", '{"length": 10}',
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert json.loads(out)["metadata"]["total_matches"] >= 6


async def test_the_admin_endpoint_shows_nothing_without_its_credential(served: WireServer) -> None:
    paths = ("/", "/world", "/journal", "/faults", "/console/x", "/nothing", "//world", "/healthz/../world")
    for wrong in ("", "Bearer", "Bearer x", basic(), f"Basic {served.credential.token}"):
        for path in paths:
            status, _, text = await served.ask("GET", path, admin=True, Authorization=wrong)
            assert status == 401
            assert served.credential.token not in text
            assert "passwords" not in text
        for method, path in (
            ("PUT", "/world"),
            ("PUT", "/faults"),
            ("DELETE", "/faults"),
            ("POST", "/sessions/expire"),
        ):
            assert (await served.ask(method, path, "{}", admin=True, Authorization=wrong))[0] == 401
    assert (await served.ask("GET", "/healthz", admin=True, Authorization=""))[0] == 200
    assert (await served.ask("GET", "/world", admin=True))[0] == 200


def test_the_credential_is_private_and_stays(tmp_path: Path) -> None:
    first = AdminCredential.ensure(tmp_path / "sim")
    assert first.path.stat().st_mode & 0o077 == 0
    assert first.token not in repr(first)
    assert AdminCredential.ensure(tmp_path / "sim") == first
    first.path.write_text("Authorization: Bearer short")
    assert AdminCredential.ensure(tmp_path / "sim").token != "short"
