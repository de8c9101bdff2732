"""Webhooks for a real kube-apiserver: certificates that renew themselves, the CA injected, reviews answered.

Every replica serves, not only the leader. Each has a certificate of its own, signed by the CA they share.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import structlog
from cryptography import x509

from homeport.api.meta import Resource
from homeport.apiserver.auth.certificate import Identity, Issuer
from homeport.apiserver.auth.file import write_private
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.clock import Clock
from homeport.runtime.webhook.authority import (
    SECRET,
    Authority,
    GivenAuthorityError,
    Lifetime,
    SharedAuthority,
    is_valid,
)
from homeport.runtime.webhook.follow import follow
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.webhook.inject import Injector
from homeport.runtime.webhook.shape import Shapes
from homeport.runtime.webhook.wire import Limits, Wire

log = structlog.get_logger(__name__)

_CHECK_SECONDS = 3600.0  # how often the Secret is read though nobody changed it
_LOOK_SECONDS = 5.0  # how often the clock is compared with the certificate: clocks jump, and machines are suspended
_RETRY_SECONDS = 5.0


class WebhookServer:
    """Make one, then `run` it until cancelled. `address` is known once `started` is set."""

    def __init__(
        self,
        hooks: Hooks,
        client: Client,
        secret: Key,
        hosts: Sequence[str],
        *,
        listen: tuple[str, int] = ("127.0.0.1", 9443),
        inject: Mapping[Resource, Sequence[str]] | None = None,
        lifetime: Lifetime | None = None,
        limits: Limits | None = None,
        shapes: Shapes | None = None,
        clock: Clock | None = None,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        """`hosts`: names and addresses under which API servers reach us. `inject`: names by kind (see Injector)."""
        if not hosts:
            raise ValueError("hosts: name at least one host under which API servers reach the webhooks")
        self.started = asyncio.Event()
        self.address: tuple[str, int] = ("", 0)
        self.injector = Injector(client, secret, inject)
        self._client = client
        self._authority = SharedAuthority(client, secret, lifetime=lifetime, clock=clock)
        self._hosts = tuple(hosts)
        self._listen = listen
        self._check_seconds = check_seconds
        self._wire = Wire(hooks, lambda: self.unready, limits, client.get, shapes)
        self._tls = _server_context()
        self._issuer: Issuer | None = None
        self._leaf: x509.Certificate | None = None
        self.bundle = b""  # PEM of the CAs by which we can be trusted
        self._trouble = ""  # why the CA can't be used
        self._wake = asyncio.Event()

    @property
    def unready(self) -> str:
        """Why API servers could not use us now; '' when they can."""
        if self._leaf is None:
            return self._trouble or "the certificate does not exist yet"
        if not self.started.is_set():
            return "not listening"
        if self._authority.now() >= self._leaf.not_valid_after_utc:
            return self._trouble or "the certificate has expired and could not be renewed"
        if missing := self.injector.missing:
            return f"the CA is not injected into {', '.join(missing)} yet"
        return ""

    @property
    def leaf(self) -> x509.Certificate | None:
        """The certificate that new connections get."""
        return self._leaf

    def check(self) -> None:
        """Look at the certificates now rather than at the next turn."""
        self._wake.set()

    async def run(self) -> None:
        """Serves until cancelled, then lets running reviews finish. Raises OSError if it can't listen."""
        await self._renew_at_last()
        self.address = await self._wire.start(*self._listen, self._tls)
        self.started.set()
        log.info("webhooks are served", host=self.address[0], port=self.address[1])
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_certificate(), name="webhook certificate")
                group.create_task(self._follow_secret(), name="webhook secret")
                group.create_task(self.injector.run(), name="webhook CA injection")
        finally:
            self.started.clear()
            await self._wire.stop()

    async def _follow_secret(self) -> None:
        secret = self._authority.secret
        query = Query(namespace=secret.namespace, fields=f"metadata.name={secret.name}")
        await follow(self._client, SECRET, query, lambda obj, deleted: self.check())

    async def _keep_certificate(self) -> None:
        while True:
            await self._until_due()
            await self._renew_at_last()

    async def _until_due(self) -> None:
        """Returns early when somebody asks, or when the clock says so."""
        looks = max(1, round(self._check_seconds / _LOOK_SECONDS))
        for _ in range(looks):
            if await self._asked(self._check_seconds / looks) or self._is_due():
                return

    async def _asked(self, seconds: float) -> bool:
        """Whether somebody asked to look at the certificates, before so many seconds are over."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def _is_due(self) -> bool:
        now = self._authority.now()
        return (
            self._issuer is None
            or self._leaf is None
            or self._authority.lifetime.leaf_due(self._leaf, now)
            or not is_valid(self._issuer.certificate, now)
        )

    async def _renew_at_last(self) -> None:
        """Renews what is due, however long the API is away: the certificate in use is good for weeks."""
        while True:
            try:
                self._adopt(await self._authority.ensure())
                self._trouble = ""
                return
            except (ApiError, GivenAuthorityError) as error:
                self._trouble = str(error)
                log.warning("the CA of webhooks can't be used", error=str(error), retry_in=_RETRY_SECONDS)
                await self._asked(_RETRY_SECONDS)

    def _adopt(self, authority: Authority) -> None:
        now, lifetime = self._authority.now(), self._authority.lifetime
        issuer = authority.issuer
        same = self._issuer is not None and self._issuer.certificate == issuer.certificate
        if not same or self._leaf is None or lifetime.leaf_due(self._leaf, now):
            left = (issuer.certificate.not_valid_after_utc - now).days
            identity = issuer.server(self._hosts, now, days=max(1, min(lifetime.leaf_days, left)), skew=lifetime.skew)
            _load(self._tls, replace(identity, certificate=identity.certificate + authority.chain))
            self._issuer, self._leaf = issuer, x509.load_pem_x509_certificate(identity.certificate)
            log.info("webhook certificate issued", until=f"{self._leaf.not_valid_after_utc:%Y-%m-%d}")
        if authority.bundle != self.bundle:
            self.bundle = authority.bundle
            self.injector.offer(self.bundle)


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would go on with a certificate that has been replaced.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    return context


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    """Into a context in use: new connections get it. OpenSSL reads files alone, so there is one for a moment."""
    with tempfile.TemporaryDirectory(prefix="homeport-webhook-") as folder:
        path = Path(folder) / "tls.pem"
        write_private(path, identity.pem)
        context.load_cert_chain(path)
