"""The edge: what comes over the network and is no proper question."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import Internal, Invalid, Unavailable
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.webhook.configuration import INJECT_ANNOTATION, MUTATING, VALIDATING, Url, render_configurations
from homeport.runtime.webhook.embedded import install
from homeport.runtime.webhook.hook import Hooks, Json
from homeport.runtime.webhook.server import WebhookServer
from homeport.runtime.webhook.wire import Limits
from unit.runtime.webhook.gadget_sample import DEFINITION, GADGET, OLD_GADGET, gadget, make_hooks
from unit.runtime.webhook.hook_world import CRDS, SECRET, by_webhook, embedded, in_process, running, until


class Caller:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, str]:
        data = body if isinstance(body, bytes) or hasattr(body, "__aiter__") else orjson.dumps(body)
        headers.setdefault("Content-Type", "application/json")
        async with self._session.post(self._url + path, data=data, headers=headers) as answer:
            return answer.status, await answer.text()

    async def get(self, path: str) -> tuple[int, str]:
        async with self._session.get(self._url + path) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def calling(webhooks: WebhookServer) -> AsyncIterator[Caller]:
    trust = ssl.create_default_context(cadata=webhooks.bundle.decode())
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield Caller(session, f"https://127.0.0.1:{webhooks.address[1]}")


@asynccontextmanager
async def served(
    folder: Path, hooks: Hooks | None = None, limits: Limits | None = None, inject: Any = None
) -> AsyncIterator[tuple[Caller, WebhookServer, Any]]:
    async with embedded(folder) as server:
        webhooks = WebhookServer(
            hooks or make_hooks(),
            server.client(),
            SECRET,
            ["127.0.0.1"],
            listen=("127.0.0.1", 0),
            limits=limits,
            inject=inject,
        )
        async with running(webhooks), calling(webhooks) as caller:
            yield caller, webhooks, server.client()


@pytest.fixture
async def caller(tmp_path: Path) -> AsyncIterator[Caller]:
    async with served(tmp_path, limits=Limits(review_bytes=1000, conversion_bytes=2000)) as (made, _, _):
        yield made


VALIDATE = "/validate/hook.homeport.test/v1/gadgets"


def question(obj: Json) -> Json:
    resource = {"group": GADGET.group, "version": "v1", "resource": "gadgets"}
    request = {"uid": "u", "resource": resource, "operation": "CREATE", "object": obj}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def test_malformed_requests_are_refused_with_a_reason(caller: Caller) -> None:
    for (path, body, headers), (code, why) in (
        ((VALIDATE, b"{", {}), (400, "not valid JSON")),
        ((VALIDATE, {}, {}), (400, "expected kind AdmissionReview")),
        ((VALIDATE, {}, {"Content-Type": "text/plain"}), (415, "only application/json")),
        ((VALIDATE, {}, {"Content-Encoding": "gzip"}), (415, "Content-Encoding")),
        (("/elsewhere", {}, {}), (404, "nothing is served here")),
        ((VALIDATE, b" " * 1001, {}), (413, "more than 1000 bytes")),
        (("/convert", b" " * 1001, {}), (400, "not valid JSON")),
        (("/convert", b" " * 2001, {}), (413, "more than 2000 bytes")),
    ):
        got = await caller.post(path, body, **headers)
        assert got[0] == code, got
        assert why in got[1]


async def test_a_body_without_a_length_is_bounded_too(caller: Caller) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    assert (await caller.post(VALIDATE, endless()))[0] == 413


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with served(tmp_path, limits=Limits(read_seconds=0.05)) as (caller, _, _):
        assert await caller.post(VALIDATE, stuck()) == (408, "the body did not come within 0.05 s")


async def test_only_so_much_is_read_at_one_time(tmp_path: Path) -> None:
    async with served(tmp_path, limits=Limits(total_bytes=1000)) as (caller, _, _):
        assert (await caller.post(VALIDATE, b" " * 1001))[0] == 503
        assert (await caller.post(VALIDATE, question(gadget("a", replicas=1, colour="red"))))[0] == 200


async def test_a_hook_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    hooks = Hooks()

    async def forever(obj: Json, old: Json | None) -> list[Any]:
        await asyncio.Event().wait()
        return []

    hooks.add(GADGET, validate=forever)
    async with served(tmp_path, hooks, Limits(answer_seconds=0.05)) as (caller, _, _):
        assert (await caller.post(VALIDATE, question(gadget("a"))))[0] == 504


async def test_a_long_list_is_converted_without_holding_others_up(tmp_path: Path) -> None:
    objects = [gadget(f"g{i}", "v1alpha1", count=i, colour="x" * 300) for i in range(2000) if i != 99]
    request = {"uid": "u", "desiredAPIVersion": "hook.homeport.test/v1", "objects": objects}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    async with served(tmp_path) as (caller, _, _):
        code, text = await caller.post("/convert", review)
        assert code == 200
        converted = orjson.loads(text)["response"]["convertedObjects"]
        assert [obj["spec"]["replicas"] for obj in converted] == [obj["spec"]["count"] for obj in objects]
        assert (await caller.post("/convert", b"{" * 600_000))[0] == 400


async def test_it_is_ready_when_what_it_was_told_to_holds_its_ca(tmp_path: Path) -> None:
    async with served(tmp_path, inject={VALIDATING: ["homeport"]}) as (caller, webhooks, client):
        webhooks.injector.offer(b"")  # there is none to inject
        assert await caller.get("/healthz") == (200, "ok")
        assert (await caller.get("/metrics"))[0] == 404
        configuration = render_configurations(make_hooks(), Url("https://127.0.0.1:1"), secret=SECRET)[1]
        await client.create(configuration, kind=VALIDATING)
        late = (503, "the CA is not injected into ValidatingWebhookConfiguration homeport yet")

        async def unready() -> bool:
            return await caller.get("/readyz") == late

        await until(unready, "it says what is missing")
        webhooks.injector.offer(webhooks.bundle)

        async def ready() -> bool:
            return (await caller.get("/readyz"))[0] == 200

        await until(ready, "it says that it is ready")


async def test_a_configuration_of_somebody_else_is_left_alone_whatever_its_name(tmp_path: Path) -> None:
    async with served(tmp_path, inject={MUTATING: ["homeport"]}) as (caller, _, client):
        url = Url("https://127.0.0.1:1")
        named = render_configurations(make_hooks(), url, name="homeport")[0]
        marked = render_configurations(make_hooks(), url, name="other", secret=SECRET)[0]
        for each in (named, marked):
            await client.create(each, kind=MUTATING)

        async def ready() -> bool:
            return (await caller.get("/readyz"))[0] == 200

        await until(ready, "it says that it is ready")
        for name in ("homeport", "other"):
            assert not _bundle(await client.get(MUTATING, Key("", name)))
        patch = MergePatch({"metadata": {"annotations": {INJECT_ANNOTATION: str(SECRET)}}})
        await client.patch(MUTATING, Key("", "homeport"), patch)

        async def injected() -> bool:
            return bool(_bundle(await client.get(MUTATING, Key("", "homeport"))))

        await until(injected, "the CA is in it")


async def test_an_annotation_asks_for_the_ca_of_one_secret(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, _, client):
        ours, theirs = (
            render_configurations(make_hooks(), Url("https://127.0.0.1:1"), name=name, secret=secret)[0]
            for name, secret in (("ours", SECRET), ("theirs", Key("other", "secret")))
        )
        assert ours["metadata"]["annotations"] == {INJECT_ANNOTATION: "default/webhook-ca"}
        await client.create(theirs, kind=MUTATING)
        await client.create(ours, kind=MUTATING)

        async def injected() -> bool:
            return bool(_bundle(await client.get(MUTATING, Key("", "ours"))))

        await until(injected, "the CA is in it")
        assert not _bundle(await client.get(MUTATING, Key("", "theirs")))


def _bundle(obj: Any) -> str:
    return str(obj["webhooks"][0]["clientConfig"].get("caBundle") or "")


async def test_a_review_under_way_is_answered_before_the_end(tmp_path: Path) -> None:
    hooks, began, go_on = Hooks(), asyncio.Event(), asyncio.Event()

    async def slow(obj: Json, old: Json | None) -> list[Any]:
        began.set()
        await go_on.wait()
        return []

    hooks.add(GADGET, validate=slow)
    async with embedded(tmp_path) as server:
        webhooks = WebhookServer(hooks, server.client(), SECRET, ["127.0.0.1"], listen=("127.0.0.1", 0))
        task = asyncio.create_task(webhooks.run())
        await webhooks.started.wait()
        async with calling(webhooks) as caller:
            asked = asyncio.create_task(caller.post(VALIDATE, question(gadget("a"))))
            await began.wait()
            task.cancel()
            asyncio.get_running_loop().call_later(0.05, go_on.set)
            assert (await asked)[0] == 200
        await asyncio.gather(task, return_exceptions=True)
        assert webhooks.unready == "not listening"


async def test_a_hook_that_breaks_fails_the_request_in_either_world(tmp_path: Path) -> None:
    def broken(obj: Json, old: Json | None) -> list[Any]:
        if obj["metadata"]["name"] == "bad":
            raise KeyError("oops")
        return []

    hooks = make_hooks()
    hooks.add(GADGET, validate=broken)
    async with in_process(tmp_path / "a", hooks) as world:
        with pytest.raises(Internal, match=r"a hook of gadgets.hook.homeport.test failed: KeyError"):
            await world.client.create(gadget("bad"), kind=GADGET)
        await world.client.create(gadget("good"), kind=GADGET)
    async with by_webhook(tmp_path / "b", hooks) as world:
        with pytest.raises(Internal, match="a hook failed; see the log of the webhook server"):
            await world.client.create(gadget("bad"), kind=GADGET)
        await world.client.create(gadget("good"), kind=GADGET)


async def test_hooks_hold_for_kinds_that_were_there_before_them(tmp_path: Path) -> None:
    async def start() -> EmbeddedServer:
        return await EmbeddedServer.open(tmp_path / "state.db", PKI.ensure(tmp_path / "pki"))

    server = await start()
    install(make_hooks(), server)
    await server.client().create(DEFINITION, kind=CRDS)
    await server.custom.settled()
    await server.client().create(gadget("a", replicas=4), kind=GADGET)
    await server.close()
    server = await start()
    install(make_hooks(), server)
    assert (await server.client().get(OLD_GADGET, Key("default", "a")))["spec"]["count"] == 4
    with pytest.raises(Invalid):
        await server.client().create(gadget("b", "v1alpha1", count=6), kind=OLD_GADGET)
    with pytest.raises(Internal, match=r"conversion of hook.homeport.test/v1alpha1, Kind=Gadget failed"):
        await server.client().create(gadget("c", "v1alpha1", count=99), kind=OLD_GADGET)
    await server.close()


async def test_it_waits_for_an_api_that_is_away(tmp_path: Path) -> None:
    class Away:
        async def get(self, kind: Resource, key: Key) -> Any:
            raise Unavailable("not yet")

    webhooks = WebhookServer(make_hooks(), Away(), SECRET, ["127.0.0.1"], listen=("127.0.0.1", 0))  # type: ignore[arg-type]
    task = asyncio.create_task(webhooks.run())
    await asyncio.sleep(0)
    assert webhooks.unready == "not yet"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_server_without_hosts_is_refused() -> None:
    with pytest.raises(ValueError, match="name at least one host"):
        WebhookServer(make_hooks(), None, SECRET, [])  # type: ignore[arg-type]
