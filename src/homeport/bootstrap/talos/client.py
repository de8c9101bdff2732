"""A client of apid, the API of a machine with Talos at port 50000.

`connect` trusts the authority of the cluster alone and shows a client certificate of it. A machine without a
configuration has neither: `connect_maintenance` trusts whoever answers, as `talosctl --insecure` does, and can do
nothing but send a configuration.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import tarfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from homeport.capi.remote.grpc import Channel, GrpcError
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.wire.reason import socket_reason
from homeport.client.wire.stream import SocketStream, dial_tls
from homeport.client.wire.tls import grpc_context
from homeport.machinery.protowire import Value, field, number_of, parse
from homeport.machinery.talos.certificate import KeyPair, openssl_key

T = TypeVar("T")

PORT: Final = 50000
CONNECT_SECONDS: Final = 10.0
CALL_SECONDS: Final = 60.0
_SERVICE: Final = "/machine.MachineService/"
_AUTO: Final = 1
_EXISTS, _PRECONDITION, _UNAVAILABLE = 6, 9, 14


class TalosError(Exception):
    """A call to a machine that failed: names the machine."""


class Unreachable(TalosError):
    """No answer: the machine boots, is off, or something lies between. Try again."""


class Untrusted(TalosError):
    """The machine's certificate is not of this cluster: it has no configuration yet, or belongs to another cluster."""


class Refused(TalosError):
    """The machine answered with an error. `later`: the same call may work in a while."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def later(self) -> bool:
        return self.code in (_PRECONDITION, _UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    state: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    learner: bool


class TalosApi:
    """One machine. Made by `connect` or `connect_maintenance`."""

    def __init__(self, channel: Channel, address: str) -> None:
        self._channel = channel
        self._address = address

    async def apply(self, config: bytes) -> None:
        """Gives the machine its configuration; a machine in maintenance starts with it at once."""
        await self._call("ApplyConfiguration", field(1, config) + field(4, _AUTO))

    async def bootstrap(self) -> bool:
        """Starts etcd on this control plane, the first of its cluster. False: it has been started before."""
        try:
            await self._call("Bootstrap", b"")
        except Refused as refused:
            if refused.code == _EXISTS:
                return False
            raise
        return True

    async def version(self) -> str:
        """The release of Talos, for example v1.9.3."""
        return _text(_message(_message(await self._call("Version", b""), 1), 2), 1)

    async def kubeconfig(self) -> bytes:
        """For an administrator of the cluster. Control planes only."""
        chunks = [
            _bytes(parse(raw), 2) for raw in await self._guarded(self._channel.collect(f"{_SERVICE}Kubeconfig", b""))
        ]
        try:
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks)), mode="r:gz") as archive:
                file = archive.extractfile("kubeconfig")
                assert file is not None
                return file.read()
        except (tarfile.TarError, KeyError, OSError, EOFError) as broken:
            raise TalosError(f"machine {self._address}: the kubeconfig can't be unpacked: {broken}") from broken

    async def services(self) -> list[Service]:
        found = _message(await self._call("ServiceList", b""), 1)
        services = [parse(raw) for raw in found.get(2, []) if isinstance(raw, bytes)]
        return [Service(_text(each, 1), _text(each, 2), bool(number_of(_message(each, 4), 2))) for each in services]

    async def members(self) -> list[Member]:
        """Of etcd. Control planes only."""
        found = _message(await self._call("EtcdMemberList", b""), 1)
        members = [parse(raw) for raw in found.get(3, []) if isinstance(raw, bytes)]
        return [Member(_text(each, 3), bool(number_of(each, 6))) for each in members]

    async def _call(self, name: str, request: bytes) -> dict[int, list[Value]]:
        return parse(await self._guarded(self._channel.call(f"{_SERVICE}{name}", request)))

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await work
        except GrpcError as refused:
            raise Refused(f"machine {self._address} refuses: {refused}", refused.code) from refused
        except TimeoutError as late:
            raise Unreachable(f"machine {self._address} does not answer in time") from late
        except ssl.SSLError as broken:
            # TLS 1.3: the server looks at the client's certificate after the handshake.
            raise Untrusted(
                f"machine {self._address} does not accept our certificate: {socket_reason(broken)}"
            ) from broken
        except OSError as lost:
            raise Unreachable(f"machine {self._address}: {socket_reason(lost)}") from lost


@asynccontextmanager
async def connect(
    address: str, authority: bytes, client: KeyPair, dial: DialOptions = DIRECT
) -> AsyncIterator[TalosApi]:
    """A configured machine. Raises Unreachable or Untrusted."""
    context = grpc_context(authority, client.certificate + openssl_key(client.key))
    async with _opened(address, context, dial) as api:
        yield api


@asynccontextmanager
async def connect_maintenance(address: str, dial: DialOptions = DIRECT) -> AsyncIterator[TalosApi]:
    """A machine that waits for its configuration."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    async with _opened(address, context, dial) as api:
        yield api


@asynccontextmanager
async def _opened(address: str, context: ssl.SSLContext, dial: DialOptions) -> AsyncIterator[TalosApi]:
    stream = await _open(address, context, dial)
    channel = Channel(stream, f"{address}:{PORT}")
    try:
        yield TalosApi(channel, address)
    finally:
        await channel.close()


async def _open(address: str, context: ssl.SSLContext, dial: DialOptions) -> SocketStream:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await dial_tls(dial, address, PORT, context)
    except ssl.SSLCertVerificationError as foreign:
        text = f"machine {address} has no certificate of this cluster: {foreign.verify_message}"
        raise Untrusted(text) from foreign
    except (OSError, TimeoutError) as error:
        raise Unreachable(f"machine {address}, port {PORT}: {socket_reason(error)}") from error


def _message(fields: dict[int, list[Value]], number: int) -> dict[int, list[Value]]:
    return parse(_bytes(fields, number))


def _bytes(fields: dict[int, list[Value]], number: int) -> bytes:
    found = fields.get(number, [b""])[-1]
    return found if isinstance(found, bytes) else b""


def _text(fields: dict[int, list[Value]], number: int) -> str:
    return _bytes(fields, number).decode("utf-8", "replace")
