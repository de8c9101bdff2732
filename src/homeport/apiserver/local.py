"""LocalClient: the Client for code in the server's own process. No HTTP, no authorisation, the same answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Unpack

import msgspec
import orjson

from homeport.api.meta import Object, Resource, Unstructured, wire
from homeport.apiserver.discovery import Discovery
from homeport.apiserver.kinds.load import kubernetes_version
from homeport.apiserver.option import DeleteOptions, ListOptions, WatchOptions, write_faults
from homeport.apiserver.registry import Call, Forward, Raw, Registry
from homeport.apiserver.request import SYSTEM, Context, User
from homeport.apiserver.resource import ServedKind, Version
from homeport.apiserver.verb.patch import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from homeport.client.errors import BadRequest, MethodNotAllowed, invalid
from homeport.client.protocol import (
    ALL,
    DEFAULT_WRITE,
    Delete,
    DeleteAll,
    Event,
    JsonPatch,
    Key,
    MergePatch,
    Page,
    Patch,
    Query,
    StrategicPatch,
    Warnings,
    Write,
    unreadable,
)
from homeport.client.wire.rest import Answer

Kind = type[Object] | Resource


def _resource(kind: Kind) -> Resource:
    return kind if isinstance(kind, Resource) else kind.__resource__


def _decode(kind: Kind, body: bytes, *, lenient: bool = False) -> Any:
    if isinstance(kind, Resource):
        return Unstructured(orjson.loads(body))
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        if not lenient:
            raise
        return unreadable(orjson.loads(body), error)


def _patch(patch: Patch) -> tuple[str, Any]:
    # The registry may keep parts of a patch in the object it makes: it gets a copy of its own.
    match patch:
        case MergePatch(body):
            return MERGE_PATCH, orjson.loads(orjson.dumps(body))
        case JsonPatch(operations):
            return JSON_PATCH, orjson.loads(orjson.dumps(operations))
        case StrategicPatch(body):
            return STRATEGIC_PATCH, orjson.loads(orjson.dumps(body))


class LocalClient:
    """A Client. `user` is who admission and managed fields see."""

    def __init__(self, registry: Registry, *, user: User = SYSTEM, field_manager: str = "homeport") -> None:
        self._registry = registry
        self._user = user
        self._field_manager = field_manager
        self.warnings = Warnings()
        self._discovery: Discovery | None = None

    def _find(self, kind: Kind) -> tuple[ServedKind, Version]:
        resource = _resource(kind)
        return self._registry.find(resource.group, resource.version, resource.plural)

    def _context(self, version: Version, options: Write, kind: str) -> Context:
        """`kind` (CreateOptions, UpdateOptions, PatchOptions) is what an error names."""
        if causes := write_faults(options.field_manager, options.field_validation):
            raise invalid("meta.k8s.io", kind, "", causes)
        ctx = Context(
            self._user,
            field_manager=options.field_manager or self._field_manager,
            dry_run=options.dry_run,
            field_validation=options.field_validation or "Warn",
        )
        if version.deprecation:
            ctx.warn(version.deprecation)
        return ctx

    def _done(self, ctx: Context) -> None:
        for text in ctx.warnings:
            self.warnings.add(text)

    async def get(self, kind: Kind, key: Key, *, subresource: str = "", resource_version: str = "") -> Any:
        served, version = self._find(kind)
        body = await self._registry.get(
            served, version, key.namespace, key.name, subresource=subresource, resource_version=resource_version
        )
        return _decode(kind, body)

    async def list(self, kind: Kind, query: Query = ALL) -> Page[Any]:
        served, version = self._find(kind)
        listing = await self._registry.list(served, version, query.namespace, _list_options(query))
        items = [_decode(kind, item, lenient=query.lenient) for item in listing.items]
        return Page(items, str(listing.revision), listing.continue_, listing.remaining)

    def watch(
        self, kind: Kind, query: Query = ALL, *, initial_events: bool = False, timeout: float | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Event[Any]]]:
        return self._watch(kind, query, initial_events, timeout)

    @asynccontextmanager
    async def _watch(
        self, kind: Kind, query: Query, initial_events: bool, timeout: float | None
    ) -> AsyncIterator[AsyncIterator[Event[Any]]]:
        served, version = self._find(kind)
        options = WatchOptions(
            labels=query.labels,
            fields=query.fields,
            resource_version=query.resource_version,
            match="NotOlderThan" if initial_events else query.match,
            initial_events=True if initial_events else None,
            bookmarks=True,
        )
        stream = self._registry.watch(served, version, query.namespace, options)
        try:
            yield _events(kind, stream, timeout, lenient=query.lenient)
        finally:
            stream.close()

    async def create(
        self,
        obj: Any,
        options: Write = DEFAULT_WRITE,
        *,
        kind: Resource | None = None,
        key: Key | None = None,
        subresource: str = "",
    ) -> Any:
        shape: Kind = kind or type(obj)
        served, version = self._find(shape)
        body = _plain(obj, _resource(shape))
        namespace = key.namespace if key else (body.get("metadata") or {}).get("namespace", "")
        ctx = self._context(version, options, "CreateOptions")
        connector = self._registry.connector(served, subresource)
        if connector is not None:
            call = Call(ctx, served, version, namespace, key.name if key else "", "POST", body, {})
            answer = await connector(call)
            if isinstance(answer, Raw | Forward):
                raise BadRequest(f"{served.plural}/{subresource} does not answer with an object")
            self._done(ctx)
            return Unstructured(answer)
        if subresource:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        try:
            return _decode(shape, await self._registry.create(ctx, served, version, namespace, body))
        finally:
            self._done(ctx)

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, *, kind: Resource, subresource: str = ""
    ) -> Unstructured:
        served, version = self._find(kind)
        body = _plain(obj, kind)
        meta = body.get("metadata") or {}
        ctx = self._context(version, options, "UpdateOptions")
        try:
            written, _ = await self._registry.update(
                ctx, served, version, meta.get("namespace", ""), meta.get("name", ""), body, subresource=subresource
            )
        finally:
            self._done(ctx)
        return Unstructured(orjson.loads(written))

    async def patch(
        self, kind: Kind, key: Key, patch: Patch, options: Write = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Any:
        served, version = self._find(kind)
        patch_type, body = _patch(patch)
        ctx = self._context(version, options, "PatchOptions")
        try:
            written, _ = await self._registry.patch(
                ctx, served, version, key.namespace, key.name, patch_type, body, subresource=subresource
            )
        finally:
            self._done(ctx)
        return _decode(kind, written)

    async def apply(
        self,
        obj: Any,
        options: Write,
        *,
        kind: Resource | None = None,
        force: bool = False,
        subresource: str = "",
    ) -> Any:
        shape: Kind = kind or type(obj)
        served, version = self._find(shape)
        body = _plain(obj, _resource(shape))
        meta = body.get("metadata") or {}
        ctx = self._context(version, options, "PatchOptions")
        ctx.field_manager = options.field_manager
        try:
            written, _ = await self._registry.patch(
                ctx,
                served,
                version,
                meta.get("namespace", ""),
                meta.get("name", ""),
                APPLY_PATCH,
                body,
                subresource=subresource,
                force=force,
            )
        finally:
            self._done(ctx)
        return _decode(shape, written)

    async def delete(
        self,
        kind: Kind,
        key: Key,
        **options: Unpack[Delete],
    ) -> Unstructured:
        served, version = self._find(kind)
        ctx = self._context(version, Write(dry_run=options.get("dry_run", False)), "DeleteOptions")
        wished = DeleteOptions(
            options.get("uid", ""),
            options.get("resource_version", ""),
            options.get("propagation") or "",
            options.get("grace_seconds"),
        )
        try:
            body, _ = await self._registry.delete(ctx, served, version, key.namespace, key.name, wished)
        finally:
            self._done(ctx)
        return Unstructured(orjson.loads(body))

    async def delete_all(self, kind: Kind, query: Query, **options: Unpack[DeleteAll]) -> Unstructured:
        served, version = self._find(kind)
        ctx = self._context(version, Write(dry_run=options.get("dry_run", False)), "DeleteOptions")
        wished = DeleteOptions(propagation=options.get("propagation") or "")
        listing = await self._registry.delete_collection(
            ctx, served, version, query.namespace, _list_options(query), wished
        )
        return Unstructured(
            kind=served.list_kind or f"{served.kind}List",
            apiVersion=version.resource.api_version,
            metadata={"resourceVersion": str(listing.revision)},
            items=[orjson.loads(item) for item in listing.items],
        )

    async def raw(self, method: str, path: str, *, accept: str = "") -> Answer:
        """The documents of discovery and the version, for whoever finds out what the server serves."""
        if method != "GET":
            raise BadRequest(f"{method} {path}: only GET is answered in process")
        if path == "/version":
            return Answer(200, {}, orjson.dumps({"gitVersion": f"{kubernetes_version()}+homeport"}))
        if self._discovery is None:
            self._discovery = Discovery(self._registry.catalog)
        found = self._discovery.find(path, accept)
        return Answer(404, {}, b"") if found is None else Answer(200, {}, found.body)

    async def close(self) -> None:
        """Nothing to close: the registry belongs to the server."""


def _plain(obj: Any, resource: Resource) -> dict[str, Any]:
    """A dict of our own (the registry may change it) that says what it is."""
    body: dict[str, Any] = wire(obj) if isinstance(obj, Object) else orjson.loads(orjson.dumps(obj))
    for field, value in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if not body.get(field):
            body[field] = value
    return body


def _list_options(query: Query) -> ListOptions:
    return ListOptions(query.labels, query.fields, query.limit, query.continue_, query.resource_version, query.match)


async def _events(
    kind: Kind, stream: Any, timeout: float | None, *, lenient: bool = False
) -> AsyncIterator[Event[Any]]:
    initial = stream.initial_end
    batches = aiter(stream)
    deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
    while True:
        # Not around the loop: a timeout must not strike the consumer while this generator is suspended.
        try:
            async with asyncio.timeout_at(deadline):
                batch = await anext(batches)
        except StopAsyncIteration:
            return
        except TimeoutError:
            yield _bookmark(kind, stream)
            return
        for event in batch:
            yield Event(event.type, _decode(kind, event.object, lenient=lenient), str(event.revision))
        if initial:
            initial = False
            yield _bookmark(kind, stream, initial_end=True)


def _bookmark(kind: Kind, stream: Any, *, initial_end: bool = False) -> Event[Any]:
    body = orjson.dumps(orjson.loads(stream.bookmark(initial_end=initial_end))["object"])
    return Event("BOOKMARK", _decode(kind, body), str(stream.revision), initial_end)
