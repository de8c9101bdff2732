"""The verbs of the API over the store. HTTP handlers and LocalClient call these, and nothing else writes objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from homeport.apiserver.name import path_segment
from homeport.apiserver.option import DeleteOptions, Listing, ListOptions, WatchOptions
from homeport.apiserver.request import Context
from homeport.apiserver.resource import Catalog, Json, ServedKind, Version
from homeport.apiserver.target import Target
from homeport.apiserver.verb.admission import Admission
from homeport.apiserver.verb.apply import Applier
from homeport.apiserver.verb.deletion import Remover
from homeport.apiserver.verb.listing import list_objects, parse_revision, too_large
from homeport.apiserver.verb.patch import APPLY_PATCH
from homeport.apiserver.verb.reader import Reader
from homeport.apiserver.verb.scale import scale_of
from homeport.apiserver.verb.scaler import Scaler
from homeport.apiserver.verb.watch import WatchStream, open_watch
from homeport.apiserver.verb.write import Writer
from homeport.apiserver.view import shrink_memo, view
from homeport.client.errors import AlreadyExists, BadRequest, Conflict, MethodNotAllowed, NotFound, Unavailable
from homeport.store import Compacted, Record, Store, StoreUnavailable

# Subresources that are windows on the stored object, as opposed to connectors.
_WINDOWS = ("status", "scale", "finalize", "approval", "ephemeralcontainers", "resize")


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is not one JSON object: a log, say."""

    body: bytes | AsyncIterator[bytes]
    content_type: str = "text/plain"
    status: int = 200  # without a body: 204, unless another one is given


Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@dataclass(frozen=True, slots=True)
class Forward:
    """An answer that takes the connection over and carries bytes to ports. `dial` raises OSError."""

    subject: str  # whose ports they are, for messages
    dial: Dial


@dataclass(frozen=True, slots=True)
class Call:
    """What a connector is asked."""

    ctx: Context
    served: ServedKind
    version: Version
    namespace: str
    name: str
    method: str
    body: Json | None
    query: Mapping[str, str]


Answer = Callable[[Call], Awaitable[Json | Raw | Forward]]


@dataclass(frozen=True, slots=True)
class Connector:
    """Answers for what is not stored. Another method than these was authorised for something else: it is refused."""

    answer: Answer
    methods: frozenset[str]

    async def __call__(self, call: Call) -> Json | Raw | Forward:
        if call.method not in self.methods:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        meta = call.body.get("metadata") if isinstance(call.body, dict) else None
        named = meta.get("namespace") if isinstance(meta, dict) else None
        if named and call.served.namespaced and named != call.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        return await self.answer(call)


class Registry:
    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        admission: Admission,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        store.cooled = shrink_memo
        self.catalog = catalog
        self.admission = admission
        self._second = (-1, "")  # the last one that `now` was asked in, and its text
        self.clock = clock
        # By (group, plural, subresource): reviews, tokens, logs, evictions.
        self._connectors: dict[tuple[str, str, str], Connector] = {}
        self._writer = Writer(store, admission, Reader(catalog), self.now)
        self._applier = Applier(store, self._writer, self.now)
        self._scaler = Scaler(self._writer, self._applier)
        self._remover = Remover(store, admission, clock)

    def now(self) -> str:
        second = int(self.clock())
        if second != self._second[0]:  # writes of the same second share the text
            self._second = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._second[1]

    def find(self, group: str, version: str, plural: str) -> tuple[ServedKind, Version]:
        found = self.catalog.find(group, version, plural)
        if found is None:
            raise NotFound("the server could not find the requested resource")
        return found

    def connect(self, group: str, plural: str, subresource: str, answer: Answer, *methods: str) -> None:
        """From now on `answer` speaks for the resource, or for its subresource, when asked with one of `methods`."""
        self._connectors[group, plural, subresource] = Connector(answer, frozenset(methods))

    def connector(self, served: ServedKind, subresource: str = "") -> Connector | None:
        return self._connectors.get((served.group, served.plural, subresource))

    def has_subresource(self, served: ServedKind, version: Version, subresource: str) -> bool:
        """Whether the subresource shows a part of the stored object."""
        exists = {"status": version.status, "scale": version.scale is not None}.get(
            subresource, subresource in served.subresources
        )
        return exists and subresource in _WINDOWS

    # -- reading -----------------------------------------------------------------------------------------------

    async def get(
        self,
        served: ServedKind,
        version: Version,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        resource_version: str = "",
        as_of: int | None = None,
    ) -> bytes:
        """`as_of`: as it was at that revision."""
        if subresource:
            self._check_subresource(served, version, subresource)
        if resource_version and (wanted := parse_revision(resource_version)) > self.store.revision:
            raise too_large(wanted, self.store.revision)
        target = _addressed(served, version, namespace, name, subresource)
        record = self.store.get(served.bucket, target.key) if as_of is None else self._past(served, target.key, as_of)
        if record is None:
            raise target.not_found()
        value = await view(record, served, version)
        if subresource == "scale" and version.scale is not None:
            return orjson.dumps(scale_of(orjson.loads(value), version.scale, served))
        return value

    def _past(self, served: ServedKind, key: str, revision: int) -> Record | None:
        """An object as it was; as it is where that is forgotten."""
        try:
            found = self.store.range(served.bucket, prefix=key, limit=1, revision=revision)
        except Compacted:
            return self.store.get(served.bucket, key)
        return found[0] if found and found[0].name == key else None

    async def list(self, served: ServedKind, version: Version, namespace: str, options: ListOptions) -> Listing:
        self._check_verb(served, "list")
        _check_namespace(namespace)
        return await list_objects(self.store, served, version, namespace, options)

    def watch(self, served: ServedKind, version: Version, namespace: str, options: WatchOptions) -> WatchStream:
        self._check_verb(served, "watch")
        _check_namespace(namespace)
        try:
            return open_watch(self.store, served, version, namespace, options)
        except StoreUnavailable as error:
            raise Unavailable(f"the server is shutting down: {error}", retry_after=1) from error

    # -- writing -----------------------------------------------------------------------------------------------

    async def create(self, ctx: Context, served: ServedKind, version: Version, namespace: str, body: Json) -> bytes:
        self._check_verb(served, "create")
        async with _Durability(self.store):
            return await self._writer.create(ctx, Target(served, version, namespace, ""), body)

    async def update(
        self,
        ctx: Context,
        served: ServedKind,
        version: Version,
        namespace: str,
        name: str,
        body: Json,
        *,
        subresource: str = "",
    ) -> tuple[bytes, bool]:
        """The object, and whether the write created it."""
        self._check_write(served, version, "update", subresource)
        target = _addressed(served, version, namespace, name, subresource)
        async with _Durability(self.store):
            if subresource == "scale":
                return await self._scaler.update(ctx, target, body), False
            return await self._writer.update(ctx, target, body)

    async def patch(
        self,
        ctx: Context,
        served: ServedKind,
        version: Version,
        namespace: str,
        name: str,
        patch_type: str,
        patch: object,
        *,
        subresource: str = "",
        force: bool = False,
    ) -> tuple[bytes, bool]:
        self._check_write(served, version, "patch", subresource)
        target = _addressed(served, version, namespace, name, subresource)
        async with _Durability(self.store):
            if subresource == "scale":
                return await self._patch_scale(ctx, target, patch_type, patch, force), False
            if patch_type == APPLY_PATCH:
                return await self._applier.apply(ctx, target, patch, force)
            return await self._writer.patch(ctx, target, patch_type, patch)

    async def _patch_scale(self, ctx: Context, target: Target, patch_type: str, patch: Any, force: bool) -> bytes:
        if patch_type == APPLY_PATCH:
            return await self._scaler.apply(ctx, target, patch, force)
        return await self._scaler.patch(ctx, target, patch_type, patch)

    async def delete(
        self, ctx: Context, served: ServedKind, version: Version, namespace: str, name: str, options: DeleteOptions
    ) -> tuple[bytes, bool]:
        """The object while something holds it, or a Status (some kinds: the object) when it is gone."""
        self._check_verb(served, "delete")
        target = _addressed(served, version, namespace, name)
        async with _Durability(self.store):
            return await self._remover.delete(ctx, target, options)

    async def delete_collection(
        self,
        ctx: Context,
        served: ServedKind,
        version: Version,
        namespace: str,
        chosen: ListOptions,
        options: DeleteOptions,
    ) -> Listing:
        """Deletes what the selectors choose; the listing shows the objects as they were."""
        self._check_verb(served, "deletecollection")
        _check_namespace(namespace)
        listing = await list_objects(self.store, served, version, namespace, chosen)
        for item in listing.items:
            meta = orjson.loads(item)["metadata"]
            try:
                await self.delete(ctx, served, version, meta.get("namespace", ""), meta["name"], options)
            except NotFound:
                continue  # somebody else was faster
        return listing if served.custom else replace(listing, items=[_untyped(item) for item in listing.items])

    # -- checks ------------------------------------------------------------------------------------------------

    def _check_verb(self, served: ServedKind, verb: str) -> None:
        if verb not in served.verbs:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")

    def _check_write(self, served: ServedKind, version: Version, verb: str, subresource: str) -> None:
        if subresource:
            self._check_subresource(served, version, subresource)
        else:
            self._check_verb(served, verb)

    def _check_subresource(self, served: ServedKind, version: Version, subresource: str) -> None:
        if not self.has_subresource(served, version, subresource):
            raise NotFound("the server could not find the requested resource")


def _check_namespace(namespace: str) -> None:
    if wrong := path_segment(namespace):
        raise BadRequest(f'Namespace parameter invalid: "{namespace}": {wrong}')


def _addressed(served: ServedKind, version: Version, namespace: str, name: str, subresource: str = "") -> Target:
    """One object's address. A name that could be taken for another address, or for none, is refused."""
    if not name:
        raise BadRequest("name must be provided")
    if wrong := path_segment(name):
        raise BadRequest(f'Name parameter invalid: "{name}": {wrong}')
    _check_namespace(namespace)
    if served.namespaced and not namespace:
        raise NotFound("the server could not find the requested resource")
    return Target(served, version, namespace, name, subresource)


def _untyped(item: bytes) -> bytes:
    """An item of a list of built-in objects does not repeat what the list says."""
    obj = orjson.loads(item)
    del obj["apiVersion"], obj["kind"]
    return orjson.dumps(obj)


class _Durability:
    """No response reveals a write that is not stored yet, not even a refusal; a store that can't write is a 503."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Conflict | AlreadyExists | NotFound):
            # It was weighed against the newest state, which may be waiting for its commit.
            await self._store.flush()
        elif isinstance(error, StoreUnavailable):
            raise Unavailable(f"the write was not stored: {error}", retry_after=1) from error
