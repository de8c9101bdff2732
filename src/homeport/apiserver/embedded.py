"""A whole API server in this process: store, kinds, access, admission and, if asked to, an HTTPS face.

`app` starts one on disk; tests and simulated clusters start as many as they like in memory.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path

from homeport.apiserver import lifecycle
from homeport.apiserver.admission import Admission
from homeport.apiserver.auth.authn import Authenticator
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.auth.rbac import Rbac
from homeport.apiserver.auth.serviceaccount import ServiceAccounts
from homeport.apiserver.auth.tokenfile import load_tokens
from homeport.apiserver.http.server import HttpServer
from homeport.apiserver.kinds import builtin_kinds
from homeport.apiserver.local import LocalClient
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import SYSTEM, User
from homeport.apiserver.resource import Catalog
from homeport.store import AesGcm, Store

# What holds credentials is encrypted on disk.
SEALED = frozenset({"secrets"})


class EmbeddedServer:
    """Open one, use `client()`, `serve()` if others are to reach it, `close()` in the end."""

    def __init__(self, store: Store, pki: PKI, clock: Callable[[], float]) -> None:
        self.store = store
        self.pki = pki
        self.catalog = Catalog()
        for served in builtin_kinds():
            self.catalog.add(served)
        self.rbac = Rbac()
        self.rbac.follow(store)
        self.admission = Admission()
        lifecycle.install(self.admission, store, self.rbac)
        self.registry = Registry(store, self.catalog, self.admission, clock=clock)
        self.accounts = ServiceAccounts(pki.signing_key, store, clock)
        static = load_tokens(pki.tokens_path) if pki.tokens_path.exists() else {}
        self.authenticator = Authenticator(store, self.accounts, static, now=clock)
        self.http: HttpServer | None = None
        self._tls: ssl.SSLContext | None = None
        self.url = ""

    @classmethod
    async def open(cls, database: Path | None, pki: PKI, *, clock: Callable[[], float] = time.time) -> EmbeddedServer:
        """`database` None keeps everything in memory."""
        store = await Store.open(database, cipher=AesGcm(pki.secrets_key), sealed=SEALED)
        server = cls(store, pki, clock)
        await server._prepare()
        return server

    async def _prepare(self) -> None:
        """What has to be there before the first request."""

    def client(self, user: User = SYSTEM, *, field_manager: str = "homeport") -> LocalClient:
        return LocalClient(self.registry, user=user, field_manager=field_manager)

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listens over TLS; gives the URL. Raises OSError if the port is taken."""
        self.http = HttpServer(self.registry, self.authenticator, self.rbac)
        self._tls = self.pki.server_context()
        chosen = await self.http.start(host, port, self._tls)
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104  (comparing, not binding)
        self.url = f"https://[{shown}]:{chosen}" if ":" in shown else f"https://{shown}:{chosen}"
        return self.url

    def reload_certificate(self) -> None:
        """New connections get the renewed certificate."""
        if self._tls is not None:
            self.pki.load_server(self._tls)

    async def close(self, *, drain_seconds: float = 10.0) -> None:
        """Finishes what is under way, then closes the store."""
        if self.http is not None:
            await self.http.drain(drain_seconds)
        await self.store.close()
