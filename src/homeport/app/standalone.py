"""The plane on one machine: an embedded API server on a data directory, until told to stop."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from homeport import __version__
from homeport.apiserver.auth.file import make_private_dir
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import SEALED, EmbeddedServer
from homeport.app.component import Components
from homeport.app.describe import describe
from homeport.app.description import Description
from homeport.app.instance import BACKUP_PATH, STATUS_PATH, Claim, Instance, remove_instance, write_instance
from homeport.app.part import Part
from homeport.app.plugins import Install, install
from homeport.app.port import holder
from homeport.app.settings import Settings
from homeport.app.show import Show, stop_event
from homeport.app.supervisor import Supervisor
from homeport.builtin.install import install as install_builtin
from homeport.builtin.workload.runner import Runners
from homeport.runtime.manager import Manager
from homeport.runtime.metric import METRICS
from homeport.runtime.stream import LogStreams
from homeport.store import AesGcm, Store

log = structlog.get_logger(__name__)

_RENEWAL_CHECK_SECONDS = 6 * 3600.0


class StartError(Exception):
    """The plane can't start; the text says why and what to do."""


async def run(
    settings: Settings, show: Show, installs: Sequence[Install] = (), streams: LogStreams | None = None
) -> None:
    """Starts, tells `show`, and returns after SIGTERM or SIGINT, with everything finished and closed.

    `streams` are the lines of the controllers, which Pods then serve.
    """
    stopping = stop_event()
    make_private_dir(settings.data)
    claim = Claim(settings.data)
    try:
        server = await start(settings)
        try:
            components = Components(server, streams or LogStreams())
            parts = _parts(server, settings, show.changed, installs, components)
            await _work(server, settings, show, parts, stopping)
        finally:
            remove_instance(settings.data)
            await server.close()
    finally:
        claim.release()


async def _work(
    server: EmbeddedServer, settings: Settings, show: Show, parts: Supervisor, stopping: asyncio.Event
) -> None:
    assert server.http is not None
    server.http.root.act(STATUS_PATH, lambda: _answer(server, parts))
    write_instance(settings.data, Instance(os.getpid(), server.url, __version__, time.time()))
    show.ready(server.url)
    _tune_garbage_collection()
    working = [asyncio.create_task(parts.run()), asyncio.create_task(show.follow(lambda: _describe(server, parts)))]
    try:
        await stopping.wait()
        log.info("stopping")
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)


def _tune_garbage_collection() -> None:
    """A request makes thousands of small objects that die by themselves; looking for cycles among them every 700
    allocations took a tenth of the processor. What is here now stays for good and need not be looked at again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def start(settings: Settings) -> EmbeddedServer:
    pki = PKI.ensure(settings.pki, [settings.host], data_exists=settings.database.exists())
    audit = settings.audit_log if settings.audit else None
    server = await EmbeddedServer.open(settings.database, pki, audit=audit)
    try:
        url = await server.serve(settings.host, settings.port)
    except OSError as error:
        await server.close()
        raise _listen_error(settings, error) from error
    assert server.http is not None
    server.http.root.act(BACKUP_PATH, lambda: _copy_database(server, settings))
    server.http.metrics.registry.register(METRICS)
    pki.write_kubeconfig(settings.kubeconfig, url)
    return server


async def _copy_database(server: EmbeddedServer, settings: Settings) -> dict[str, str]:
    """For `homeport backup`, which packs the copy: the database itself is open to this process alone."""
    copy = settings.data / f"backup-{uuid.uuid4().hex}.db"
    await server.store.backup(copy)
    return {"database": str(copy)}


async def copy_closed(settings: Settings) -> Path:
    """The same for a plane that does not run."""
    pki = PKI.ensure(settings.pki, [settings.host], data_exists=True)
    store = await Store.open(settings.database, cipher=AesGcm(pki.secrets_key), sealed=SEALED)
    try:
        copy = settings.data / f"backup-{uuid.uuid4().hex}.db"
        await store.backup(copy)
        return copy
    finally:
        await store.close()


async def _answer(server: EmbeddedServer, parts: Supervisor) -> Any:
    return msgspec.to_builtins(_describe(server, parts))


def _describe(server: EmbeddedServer, parts: Supervisor) -> Description:
    store = server.store
    buckets = {bucket: store.count(bucket) for bucket in sorted(store.buckets())}
    return describe(
        parts.parts,
        parts.managers,
        objects={bucket: count for bucket, count in buckets.items() if count},
        revision=store.revision,
        requests=server.http.metrics.total if server.http is not None else 0,
    )


def _listen_error(settings: Settings, error: OSError) -> StartError:
    address = f"{settings.host}:{settings.port}"
    if error.errno != errno.EADDRINUSE:
        return StartError(f"can't listen on {address}: {error.strerror or error}")
    who = holder(settings.port)
    by = f" by {who}" if who else ""
    return StartError(f"{address} is already in use{by}: stop it, or choose another with --listen 127.0.0.1:PORT")


def _parts(
    server: EmbeddedServer,
    settings: Settings,
    changed: Callable[[Part], None],
    installs: Sequence[Install],
    components: Components,
) -> Supervisor:
    runners = Runners() if settings.workloads else None

    def loops() -> Manager:
        manager = Manager(server.client(), name="homeport")
        install_builtin(server, manager, runners)
        return components.note(manager)

    def controllers() -> Manager:
        return components.note(install(Manager(server.client(), name="homeport"), installs))

    supervisor = Supervisor(changed=changed)
    supervisor.add("certificates", lambda: _renew_certificates(server, settings))
    supervisor.add("cluster roles", server.aggregator.run)
    supervisor.add_manager("loops", loops)
    if installs:
        # Apart from the loops: what goes wrong in a controller must not stop garbage collection.
        supervisor.add_manager("controllers", controllers)
    supervisor.add("logs", components.run)
    return supervisor


async def _renew_certificates(server: EmbeddedServer, settings: Settings) -> None:
    while True:
        await asyncio.sleep(_RENEWAL_CHECK_SECONDS)
        if server.pki.renew():
            server.reload_certificate()
        server.pki.write_kubeconfig(settings.kubeconfig, server.url)
