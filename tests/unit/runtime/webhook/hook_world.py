"""The same hooks in three worlds: in process, by webhook of the embedded server, by webhook of a real kube-apiserver."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, Write
from homeport.runtime.webhook import configuration
from homeport.runtime.webhook.configuration import MUTATING, VALIDATING, Url, render_configurations, with_conversion
from homeport.runtime.webhook.embedded import install
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.webhook.server import WebhookServer
from realkube import RealKube
from unit.runtime.webhook.gadget_sample import DEFINITION, OLD_GADGET, gadget, make_hooks

SECRET = Key("default", "webhook-ca")
CRDS = configuration.DEFINITION
INJECT = {MUTATING: ["homeport"], VALIDATING: ["homeport"], CRDS: ["gadgets.hook.homeport.test"]}
_TEST = Write(field_manager="test")


class World:
    def __init__(self, client: Any, webhooks: WebhookServer | None = None) -> None:
        self.client = client
        self.webhooks = webhooks


async def until(condition: Callable[[], Awaitable[bool]], what: str, seconds: float = 20.0) -> None:
    """A poll by nature: another process decides."""
    try:
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what}") from None


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[EmbeddedServer]:
    server = await EmbeddedServer.open(None, PKI.ensure(folder / "pki"))
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def in_process(folder: Path, hooks: Hooks | None = None) -> AsyncIterator[World]:
    async with embedded(folder) as server:
        install(hooks or make_hooks(), server)
        client = server.client()
        await client.apply(DEFINITION, _TEST, kind=CRDS)
        await server.custom.settled()
        yield World(client)


@asynccontextmanager
async def by_webhook(folder: Path, hooks: Hooks | None = None, **more: Any) -> AsyncIterator[World]:
    async with embedded(folder) as server, serving(server.client(), 0, hooks or make_hooks(), **more) as world:
        yield world


@asynccontextmanager
async def on_real(kube: RealKube, port: int, **more: Any) -> AsyncIterator[World]:
    client = HttpClient(load(kube.kubeconfig))
    try:
        async with serving(client, port, make_hooks(), **more) as world:
            yield world
    finally:
        await client.close()


@asynccontextmanager
async def serving(client: Any, port: int, hooks: Hooks, **more: Any) -> AsyncIterator[World]:
    webhooks = WebhookServer(hooks, client, SECRET, ["127.0.0.1"], listen=("127.0.0.1", port), inject=INJECT, **more)
    async with running(webhooks):
        url = Url(f"https://127.0.0.1:{webhooks.address[1]}")
        for obj in with_conversion(hooks, [DEFINITION], url, secret=SECRET):
            await client.apply(obj, _TEST, kind=CRDS, force=True)
        for obj in render_configurations(hooks, url, secret=SECRET):
            kind = MUTATING if obj["kind"] == MUTATING.kind else VALIDATING
            await client.apply(obj, _TEST, kind=kind, force=True)
        world = World(client, webhooks)
        await until(lambda: _in_force(world), "the webhooks are asked")
        yield world


@asynccontextmanager
async def running(webhooks: WebhookServer) -> AsyncIterator[None]:
    task = asyncio.create_task(webhooks.run())
    try:
        await asyncio.wait({task, asyncio.ensure_future(webhooks.started.wait())}, return_when="FIRST_COMPLETED")
        assert not task.done(), task.exception()
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _in_force(world: World) -> bool:
    """API servers learn of configurations and of the CA a moment after they are written."""
    assert world.webhooks is not None
    if world.webhooks.unready:
        return False
    try:
        probe = gadget("probe", "v1alpha1", count=9)
        await world.client.create(probe, Write(dry_run=True), kind=OLD_GADGET)
    except ApiError as error:
        return "must be at most 5" in str(error)
    return False
