"""A registry in memory with the built-in kinds, asked by method and path as over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from homeport.apiserver.kinds import builtin_kinds, seed_objects
from homeport.apiserver.kinds.install import Installed, install
from homeport.apiserver.option import DeleteOptions, ListOptions
from homeport.apiserver.registry import Call, Raw, Registry
from homeport.apiserver.request import Context, User
from homeport.apiserver.resource import Catalog, ServedKind, Version
from homeport.apiserver.verb import lifecycle
from homeport.apiserver.verb.admission import Admission
from homeport.client.errors import ApiError
from homeport.store import Store

Json = dict[str, Any]
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"), uid="u1", extra={"k": ("v",)})


@dataclass
class Address:
    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str


def address(path: str) -> Address:
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("finalize", "status"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    return Address(group, version, plural, namespace, name, subresource)


class Server:
    def __init__(self, store: Store) -> None:
        catalog, self.admission = Catalog(), Admission()
        for served in builtin_kinds():
            catalog.add(served)
        lifecycle.install(self.admission, store)
        self.store = store
        self.registry = Registry(store, catalog, self.admission)
        self.installed: Installed = install(self.registry)

    async def ask(
        self, method: str, path: str, body: Json | None = None, content_type: str = "application/json"
    ) -> tuple[int, Any]:
        """The status code and the answer. What a client sent is its own: it is copied."""
        path, _, query = path.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        ctx = Context(ADMIN, user_agent="test/1", dry_run=options.get("dryRun") == "All")
        try:
            at = address(path)
            served, version = self.registry.find(at.group, at.version, at.plural)
            return await self._serve(
                ctx, method, at, served, version, options, json.loads(json.dumps(body)), content_type
            )
        except ApiError as error:
            return error.http_code, error.status

    async def _serve(
        self,
        ctx: Context,
        method: str,
        at: Address,
        served: ServedKind,
        version: Version,
        options: dict[str, str],
        body: Any,
        content_type: str,
    ) -> tuple[int, Any]:
        registry = self.registry
        connector = registry.connector(served, at.subresource) if at.subresource else None
        if connector is not None:
            answer = await connector(Call(ctx, served, version, at.namespace, at.name, method, body, options))
            return (200, answer) if isinstance(answer, Raw) else (201 if method == "POST" else 200, answer)
        where = (served, version, at.namespace)
        if method == "POST":
            return 201, json.loads(await registry.create(ctx, *where, body))
        if method == "PUT":
            raw, made = await registry.update(ctx, *where, at.name, body, subresource=at.subresource)
            return 201 if made else 200, json.loads(raw)
        if method == "PATCH":
            raw, _ = await registry.patch(ctx, *where, at.name, content_type, body, subresource=at.subresource)
            return 200, json.loads(raw)
        if method == "DELETE":
            grace = options.get("gracePeriodSeconds")
            wish = DeleteOptions(grace_seconds=None if grace is None else int(grace))
            return 200, json.loads((await registry.delete(ctx, *where, at.name, wish))[0])
        if at.name:
            return 200, json.loads(await registry.get(*where, at.name, subresource=at.subresource))
        chosen = ListOptions(labels=options.get("labelSelector", ""), fields=options.get("fieldSelector", ""))
        listing = await registry.list(*where, chosen)
        return 200, {"items": [json.loads(item) for item in listing.items]}


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    store = await Store.open(None)
    try:
        server = Server(store)
        for obj, kind in seed_objects():
            code, answer = await server.ask("POST", kind.path(obj["metadata"].get("namespace", "")), obj)
            assert code == 201, answer
        yield server
    finally:
        await store.close()
