"""TLS sessions are resumed by further connections to the same server, and only for some minutes."""

from __future__ import annotations

import datetime
import gc
import ssl
import tempfile
import time
import weakref

import pytest

from homeport.capi.remote.pki import KeyPair, client_certificate, generate
from homeport.client.wire.resumption import ResumingContext, forget_sessions


async def authority() -> KeyPair:
    return (await generate(("ca",), now=time.time()))["ca"]


def load(context: ssl.SSLContext, pair: KeyPair, trusted: KeyPair) -> None:
    context.load_verify_locations(cadata=trusted.certificate.decode())
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)


def server_of(ca: KeyPair, *names: str) -> ssl.SSLContext:
    made = ca.issuer().server(names, datetime.datetime.now(datetime.UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    load(context, KeyPair(made.certificate, made.key), ca)
    return context


def client_of(ca: KeyPair) -> ResumingContext:
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    load(context, client_certificate(ca, "somebody", now=time.time()), ca)
    return context


def connect(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """One connection in memory, over which the server sends one byte."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=name)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    open_ends = [here, there]
    while open_ends:
        for end in list(open_ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            open_ends.remove(end)
    there.write(b"x")
    assert here.read() == b"x"
    return here


async def test_a_second_connection_resumes_the_session_of_the_first() -> None:
    ca = await authority()
    client, server = client_of(ca), server_of(ca, "one", "two")
    first = connect(client, server, "one")
    assert not first.session_reused
    assert all(connect(client, server, "one").session_reused for _ in range(3))
    assert not connect(client, server, "two").session_reused, "another name has to be verified"
    assert connect(client, server, "one").getpeercert() == first.getpeercert()


async def test_a_certificate_is_verified_again_after_some_minutes() -> None:
    ca = await authority()
    client, server = client_of(ca), server_of(ca, "one")
    connect(client, server, "one")
    assert connect(client, server, "one").session_reused
    client.verified_seconds = 0.0
    assert not connect(client, server, "one").session_reused


async def test_another_server_of_the_same_name_is_verified() -> None:
    """A control plane address moves to another machine."""
    ca, stranger = await authority(), await authority()
    client = client_of(ca)
    connect(client, server_of(ca, "one"), "one")
    assert not connect(client, server_of(ca, "one"), "one").session_reused
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(client, server_of(stranger, "one"), "one")


async def test_a_context_without_sessions_is_freed_without_the_garbage_collector() -> None:
    """What OpenSSL holds is invisible to the collector, which would leave it there for hours."""
    ca = await authority()
    client = client_of(ca)
    connect(client, server_of(ca, "one"), "one")
    freed = weakref.ref(client)
    gc.disable()
    try:
        forget_sessions(client)
        del client
        assert freed() is None
    finally:
        gc.enable()
