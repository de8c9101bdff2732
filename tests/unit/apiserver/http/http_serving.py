"""A whole API server in memory, and a client that shows what goes over the wire."""

from __future__ import annotations

import asyncio
import hashlib
import io
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from yarl import URL

from homeport.api.meta import Resource
from homeport.apiserver.auth.authn import Authenticator
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.auth.token.serviceaccount import ServiceAccounts
from homeport.apiserver.http.server import HttpServer
from homeport.apiserver.kinds.load import builtin_kinds
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import SYSTEM, Context, User
from homeport.apiserver.resource import Catalog, Column, Scale, ServedKind, Version
from homeport.apiserver.verb.admission import Admission
from homeport.apiserver.verb.lifecycle import NamespaceLifecycle
from homeport.machinery.schema import Schema, compile_checker
from homeport.store import Store

ADMIN, NOBODY = "admin-token", "nobody-token"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

_WIDGET = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "color": {"type": "string"},
                "replicas": {"type": "integer"},
                "share": {"type": "number"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def widget_kind() -> ServedKind:
    at = Version(
        resource=Resource("example.com", "v1", "Widget", "widgets", True),
        schema=Schema(_WIDGET),
        checker=compile_checker(_WIDGET),
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas"),
        columns=(
            Column("Color", "string", read=lambda obj: obj.get("spec", {}).get("color")),
            Column("Replicas", "integer", priority=1, read=lambda obj: obj.get("spec", {}).get("replicas")),
            Column("Age", "date", read=lambda obj: obj["metadata"].get("creationTimestamp")),
        ),
        raw_schema=_WIDGET,
    )
    return ServedKind(
        group="example.com",
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        storage="v1",
        versions={"v1": at},
        strategy=Plain(),
        list_kind="WidgetList",
        custom=True,
    )


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    warnings: list[str]

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])


@dataclass(slots=True)
class Api:
    """The running server and a session that speaks to it as the administrator, unless told otherwise."""

    server: HttpServer
    registry: Registry
    session: aiohttp.ClientSession
    base: str
    port: int

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = ADMIN,
        content_type: str | None = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent: dict[str, str] = {"User-Agent": "test/1", **(headers or {})}
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {token}")
        data = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        if data is not None and content_type is not None:
            sent["Content-Type"] = content_type
        async with self.session.request(
            method,
            URL(self.base + path, encoded=True),
            data=None if data is None else io.BytesIO(data),
            headers=sent,
            skip_auto_headers=["Content-Type"],
        ) as got:
            return Answer(got.status, got.headers, await got.read(), got.headers.getall("Warning", []))

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.call("POST", path, body, **options)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


@asynccontextmanager
async def serving(
    *,
    tls: ssl.SSLContext | None = None,
    rbac: Rbac | None = None,
    registry_type: type[Registry] = Registry,
    **options: Any,
) -> AsyncIterator[Api]:
    """A server with the built-in kinds, widgets and the namespace `default`."""
    store = await Store.open(None)
    catalog = Catalog()
    for served in (*builtin_kinds(), widget_kind()):
        catalog.add(served)
    admission = Admission()
    admission.add(NamespaceLifecycle(store))
    registry = registry_type(store, catalog, admission)
    rbac = rbac or Rbac()
    rbac.follow(store)
    accounts = ServiceAccounts(ec.generate_private_key(ec.SECP256R1()), store, time.time)
    static = {
        _digest(ADMIN): User("admin", ("system:masters",)),
        _digest(NOBODY): User("nobody"),
    }
    server = HttpServer(registry, Authenticator(store, accounts, static), rbac, **options)
    await registry.create(
        Context(SYSTEM), *registry.find("", "v1", "namespaces"), "", {"metadata": {"name": "default"}}
    )
    port = await server.start("127.0.0.1", 0, tls)
    scheme = "https" if tls else "http"
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield Api(server, registry, session, f"{scheme}://127.0.0.1:{port}", port)
    await server.stop()
    await store.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing announces what tests wait for
        await asyncio.sleep(0)
