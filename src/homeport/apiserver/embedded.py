"""A whole API server in this process: store, kinds, access, admission and, if asked to, an HTTPS face.

`app` starts one on disk; tests and simulated clusters start as many as they like in memory.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson

from homeport.apiserver.audit import AuditLog
from homeport.apiserver.auth.authn import Authenticator
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.auth.rbac.reconcile import Aggregator, ensure_policy
from homeport.apiserver.auth.review import Reviews
from homeport.apiserver.auth.token.file import load_tokens
from homeport.apiserver.auth.token.request import TokenRequests
from homeport.apiserver.auth.token.serviceaccount import ServiceAccounts
from homeport.apiserver.crds import ConversionHook, CustomResources, DefinitionStrategy
from homeport.apiserver.fresh import Fresh
from homeport.apiserver.http.server import HttpServer
from homeport.apiserver.http.webhook import WebhookCaller
from homeport.apiserver.kinds import builtin_kinds, seed_objects
from homeport.apiserver.kinds.install import install as install_builtin
from homeport.apiserver.local import LocalClient
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import SYSTEM, User
from homeport.apiserver.resource import Catalog, Json, ServedKind
from homeport.apiserver.trail import Trail
from homeport.apiserver.verb import lifecycle
from homeport.apiserver.verb.admission import Admission
from homeport.apiserver.view import to_version
from homeport.apiserver.webhook.condition import compile_condition
from homeport.apiserver.webhook.conversion import ConversionCaller
from homeport.apiserver.webhook.dispatch import WebhookAdmission
from homeport.apiserver.webhook.endpoint import ServiceEndpoints
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client
from homeport.store import AesGcm, History, Store

# What holds credentials is encrypted on disk.
SEALED = frozenset({"secrets"})
SERVICE_NETWORK = "10.96.0.0/16"
# What servers in memory begin with, by their service network.
_fresh: dict[str, Fresh] = {}


class EmbeddedServer:
    """Open one, use `client()`, `serve()` if others are to reach it, `close()` in the end."""

    def __init__(
        self,
        store: Store,
        pki: PKI,
        clock: Callable[[], float],
        audit: AuditLog | None = None,
        service_network: str = SERVICE_NETWORK,
        trail: Trail | None = None,
    ) -> None:
        self.store = store
        self._trail = trail
        self._audit = audit
        self.pki = pki
        self.catalog = Catalog()
        for served in builtin_kinds():
            self.catalog.add(served)
        definitions = self.catalog.by_plural("apiextensions.k8s.io", "customresourcedefinitions")
        assert definitions is not None
        definitions.strategy = DefinitionStrategy()
        self.rbac = Rbac()
        self.rbac.follow(store)
        self.admission = Admission()
        lifecycle.install(self.admission, store, self.rbac)
        self.registry = Registry(store, self.catalog, self.admission, clock=clock)
        self.builtin = install_builtin(self.registry, service_network=service_network)
        self.accounts = ServiceAccounts(pki.signing_key, store, clock)
        static = load_tokens(pki.tokens_path) if pki.tokens_path.exists() else {}
        self.authenticator = Authenticator(store, self.accounts, static, now=clock)
        Reviews(self.authenticator, self.rbac, self.registry.now).install(self.registry)
        TokenRequests(self.accounts, store, self.registry.now).install(self.registry)
        self.webhook_caller = WebhookCaller(ServiceEndpoints(store).resolve)
        self.conversions: dict[tuple[str, str], ConversionHook] = {}  # by group and kind
        self.custom = CustomResources(
            self.registry, hooks=self.conversions, caller=ConversionCaller(store, self.webhook_caller)
        )
        self._webhooks = WebhookAdmission(store, self.webhook_caller, _convert, compile_condition, self.admission)
        self.admission.add(self._webhooks, last=True)
        self.aggregator = Aggregator(self.rbac, self.client())
        self.http: HttpServer | None = None
        self._tls: ssl.SSLContext | None = None
        self.url = ""

    @classmethod
    async def open(
        cls,
        database: Path | None,
        pki: PKI,
        *,
        clock: Callable[[], float] = time.time,
        audit: Path | None = None,
        trail: Path | None = None,
        service_network: str = SERVICE_NETWORK,
        history: History | None = None,
        copy_of: Path | None = None,
        simulated: bool = False,
    ) -> EmbeddedServer:
        """`database` None keeps everything in memory, beginning with the backup `copy_of` if there is one.

        `audit` names the file of the audit log, `trail` that of the newest changes by users; `service_network` is
        where Services get their addresses from, and `history` says how much of the past watches may resume from.
        What a `simulated` server acknowledges survives the death of the process, but not a power failure.
        """
        cipher = AesGcm(pki.secrets_key)
        kept = history or History()
        known = _fresh.get(service_network) if database is None and copy_of is None else None
        store = await Store.open(
            database,
            cipher=cipher,
            sealed=SEALED,
            synchronous="NORMAL" if simulated else "FULL",
            history=kept,
            clock=clock,
            copy_of=copy_of,
            past=known.changes(clock()) if known is not None else (),
            reserve=not simulated,
        )
        kept_trail = Trail(trail, clock, partial(_namespace_uid, store)) if trail is not None else None
        server = cls(store, pki, clock, AuditLog(audit) if audit is not None else None, service_network, kept_trail)
        server._follow()
        if known is None:
            await server._prepare()
            if database is None and copy_of is None and not store.compacted:
                _fresh[service_network] = Fresh(store.past())
        return server

    def _follow(self) -> None:
        self._webhooks.follow()
        self.aggregator.follow(self.store)
        self.custom.start()

    async def _prepare(self) -> None:
        """What has to be there before the first request."""
        client = self.client()
        for obj, kind in seed_objects(service_address=self.builtin.allocator.first_address):
            if self.store.get(kind.qualified, _name(obj)) is None:
                with contextlib.suppress(AlreadyExists):
                    await client.create(obj, kind=kind)
        await ensure_policy(client)
        await self.aggregator.settle()

    def client(self, user: User = SYSTEM, *, field_manager: str = "homeport") -> Client:
        return LocalClient(self.registry, user=user, field_manager=field_manager)

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listens over TLS; gives the URL. Raises OSError if the port is taken."""
        self.http = HttpServer(
            self.registry, self.authenticator, self.rbac, accounts=self.accounts, audit=self._audit, trail=self._trail
        )
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
        await self.custom.close()
        await self.webhook_caller.close()
        if self._audit is not None:
            self._audit.close()
        if self._trail is not None:
            self._trail.close()
        await self.store.close()


async def _convert(objects: list[Json], served: ServedKind, version: str) -> list[Json]:
    api_version = f"{served.group}/{version}" if served.group else version
    return await to_version(objects, served, version, api_version)


def _namespace_uid(store: Store, name: str) -> str:
    found = store.get("namespaces", name)
    return "" if found is None else str(orjson.loads(found.value)["metadata"].get("uid", ""))


def _name(obj: Json) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])
