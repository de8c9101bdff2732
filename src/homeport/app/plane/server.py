"""The embedded API server of a plane: opened on its data, with the kinds of the platform, and served."""

from __future__ import annotations

import asyncio
import errno

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.app.definition import DefinitionError, install_definitions
from homeport.app.object.deployment import create_namespaces, create_objects
from homeport.app.object.inventory import publish_inventory
from homeport.app.plane.port import holder
from homeport.app.platform import Platform
from homeport.app.settings import Settings
from homeport.capi.environment import Environment
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.errors import Unavailable
from homeport.runtime.telemetry.metric import METRICS
from homeport.runtime.webhook.embedded import install as install_hooks

_RENEWAL_CHECK_SECONDS = 6 * 3600.0


class StartError(Exception):
    """The plane can't start; the text says why and what to do."""


async def start(settings: Settings, platform: Platform, dial: DialOptions = DIRECT) -> EmbeddedServer:
    pki = PKI.ensure(settings.pki, [settings.host], data_exists=settings.database.exists())
    audit = settings.audit_log if settings.audit else None
    server = await EmbeddedServer.open(settings.database, pki, audit=audit, trail=settings.changes)
    try:
        await _prepare(server, platform, dial)
        url = await server.serve(settings.host, settings.port)
    except OSError as error:
        await server.close()
        raise _listen_error(settings, error) from error
    except BaseException:
        await server.close()
        raise
    assert server.http is not None
    server.http.metrics.registry.register(METRICS)
    pki.write_kubeconfig(settings.kubeconfig, url)
    return server


async def _prepare(server: EmbeddedServer, platform: Platform, dial: DialOptions) -> None:
    """The kinds of the platform and what guards them, before anybody can ask for one."""
    client = server.client()
    install_hooks(platform.register(Environment(client, dial, server)), server)
    try:
        await install_definitions(client, platform.definitions())
        await publish_inventory(client, platform.inventory())
        await create_namespaces(client, platform.namespaces())
        await create_objects(client, platform.objects())
    except (DefinitionError, Unavailable) as error:  # Unavailable: the disk is full
        raise StartError(str(error)) from error


def _listen_error(settings: Settings, error: OSError) -> StartError:
    address = f"{settings.host}:{settings.port}"
    if error.errno != errno.EADDRINUSE:
        why = error.strerror or error
        return StartError(
            f"can't listen on {address}: {why}; choose an address of this machine with --listen HOST:PORT"
        )
    who = holder(settings.port)
    by = f" by {who}" if who else ""
    return StartError(f"{address} is already in use{by}: stop it, or choose another with --listen 127.0.0.1:PORT")


async def renew_certificates(server: EmbeddedServer, settings: Settings) -> None:
    while True:
        await asyncio.sleep(_RENEWAL_CHECK_SECONDS)
        if server.pki.renew():
            server.reload_certificate()
        server.pki.write_kubeconfig(settings.kubeconfig, server.url)
