"""The plane on one machine: an embedded API server on a data directory, until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from homeport import __version__
from homeport.apiserver.auth.file import make_private_dir
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import SEALED, EmbeddedServer
from homeport.app.instance import Instance, remove_instance, write_instance
from homeport.app.port import holder
from homeport.app.settings import Settings
from homeport.app.supervisor import Supervisor
from homeport.builtin.install import install as install_builtin
from homeport.runtime.manager import Manager
from homeport.store import AesGcm, Store

log = structlog.get_logger(__name__)

BACKUP_PATH = "/homeport/backup"
STATUS_PATH = "/homeport/status"
_RENEWAL_CHECK_SECONDS = 6 * 3600.0


class StartError(Exception):
    """The plane can't start; the text says why and what to do."""


async def run(settings: Settings, ready: Callable[[str], None]) -> None:
    """Starts, calls `ready(url)`, and returns after SIGTERM or SIGINT, with everything finished and closed."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = await start(settings)
    try:
        write_instance(settings.data, Instance(os.getpid(), server.url, __version__, time.time()))
        ready(server.url)
        working = asyncio.create_task(_parts(server, settings).run())
        await stopping.wait()
        log.info("stopping")
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
    finally:
        remove_instance(settings.data)
        await server.close()


async def start(settings: Settings) -> EmbeddedServer:
    make_private_dir(settings.data)
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
    server.http.root.act(STATUS_PATH, lambda: _describe(server))
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


async def _describe(server: EmbeddedServer) -> dict[str, Any]:
    store = server.store
    buckets = {bucket: store.count(bucket) for bucket in sorted(store.buckets())}
    return {"revision": store.revision, "objects": {bucket: count for bucket, count in buckets.items() if count}}


def _listen_error(settings: Settings, error: OSError) -> StartError:
    address = f"{settings.host}:{settings.port}"
    if error.errno != errno.EADDRINUSE:
        return StartError(f"can't listen on {address}: {error.strerror or error}")
    who = holder(settings.port)
    by = f" by {who}" if who else ""
    return StartError(f"{address} is already in use{by}: stop it, or choose another with --listen 127.0.0.1:PORT")


def _parts(server: EmbeddedServer, settings: Settings) -> Supervisor:
    async def loops() -> None:
        manager = Manager(server.client(), name="homeport")
        install_builtin(server, manager)
        await manager.run()

    supervisor = Supervisor()
    supervisor.add("certificates", lambda: _renew_certificates(server, settings))
    supervisor.add("cluster roles", server.aggregator.run)
    supervisor.add("loops", loops)
    return supervisor


async def _renew_certificates(server: EmbeddedServer, settings: Settings) -> None:
    while True:
        await asyncio.sleep(_RENEWAL_CHECK_SECONDS)
        if server.pki.renew():
            server.reload_certificate()
        server.pki.write_kubeconfig(settings.kubeconfig, server.url)
