"""Connections to an etcd: TLS with a client certificate, to the first endpoint that answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from homeport.capi.remote.grpc import Channel, GrpcError
from homeport.capi.remote.pki import KeyPair
from homeport.client.dial import DIRECT
from homeport.client.wire.reason import socket_reason
from homeport.client.wire.stream import SocketStream, dial_tls
from homeport.client.wire.tls import grpc_context
from homeport.hosted.etcd.client import Etcd

CONNECT_SECONDS = 5.0
CALL_SECONDS = 30.0
_RESPONSE_BYTES = 64 * 1024 * 1024


class DatastoreError(Exception):
    """A datastore that can't be used, or refuses: says which, why and what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an etcd as a user with the role root."""

    datastore: str
    endpoints: tuple[str, ...]
    ca: bytes
    client: KeyPair = field(repr=False)


@asynccontextmanager
async def connect(access: Access) -> AsyncIterator[Etcd]:
    """Raises DatastoreError for everything that goes wrong, also within the block."""
    stream, authority = await _open(access)
    etcd = Etcd(Channel(stream, authority, max_bytes=_RESPONSE_BYTES))
    try:
        async with asyncio.timeout(CALL_SECONDS * 20):
            yield etcd
    except GrpcError as refused:
        raise DatastoreError("DatastoreRefused", f"DataStore {access.datastore}: etcd refused: {refused}") from refused
    except TimeoutError as late:
        raise DatastoreError("DatastoreUnreachable", f"DataStore {access.datastore}: no answer in time") from late
    except OSError as lost:
        text = f"DataStore {access.datastore}: the connection to etcd was lost: {socket_reason(lost)}"
        raise DatastoreError("DatastoreUnreachable", text) from lost
    finally:
        await etcd.close()


async def _open(access: Access) -> tuple[SocketStream, str]:
    context = grpc_context(access.ca, access.client.certificate + access.client.key)
    problems = []
    for endpoint in access.endpoints:
        host, port = split_endpoint(endpoint)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await dial_tls(DIRECT, host, port, context), f"{host}:{port}"
        except (OSError, TimeoutError) as error:
            problems.append(f"{endpoint}: {socket_reason(error)}")
    raise DatastoreError(
        "DatastoreUnreachable",
        f"DataStore {access.datastore}: no endpoint answers ({'; '.join(problems)}): check spec.endpoints, the "
        "certificates and whether etcd runs",
    )


def split_endpoint(endpoint: str) -> tuple[str, int]:
    """`host:port` or a URL. Raises ValueError."""
    parts = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
    if not parts.hostname or not parts.port:
        raise ValueError(f"{endpoint!r} is not a valid endpoint: expected host:port, for example 10.0.0.5:2379")
    return parts.hostname, parts.port
