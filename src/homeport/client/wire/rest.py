"""The verbs of a protocol.Client as Kubernetes requests, whatever carries them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypedDict, Unpack

import orjson

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import ApiError, BadRequest, NotFound, from_status
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
)
from homeport.client.wire.address import (
    DEFAULT_MANAGER,
    collection_path,
    list_pairs,
    object_path,
    resource_of,
    segment,
    watch_pairs,
    with_query,
    write_pairs,
)
from homeport.client.wire.codec import codec, encode
from homeport.client.wire.reason import body_text
from homeport.client.wire.retry import Retry, retry_after
from homeport.client.wire.watch import Between, LineStream, Watch

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
_PATCH_TYPES: dict[type[Any], str] = {
    MergePatch: "application/merge-patch+json",
    JsonPatch: "application/json-patch+json",
    StrategicPatch: "application/strategic-merge-patch+json",
}
GRACE_SECONDS = 30.0
LOG_SECONDS = 60.0
_LOG = Resource("", "v1", "Pod", "pods")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # by case-insensitive name; of a repeated header the first value
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)

    def check(self, what: str) -> bytes:
        if self.status >= 300:
            raise self.error(what)
        return self.body

    def error(self, what: str) -> ApiError:
        """The exception for a refusal. Proxies in between answer without a Status."""
        try:
            status = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            status = None
        after = retry_after(self.headers)
        if isinstance(status, dict) and status.get("kind") == "Status":
            return from_status(status, code=self.status, retry_after=after)
        if self.status == 404:  # a path that is not served: plain text from the server or a proxy
            return NotFound("the server could not find the requested resource")
        text = body_text(self.body)
        message = f"{what}: the server answered {self.status}" + (f": {text}" if text else "")
        return from_status({"message": message}, code=self.status, retry_after=after)


class ByteStream(Protocol):
    def chunks(self) -> AsyncIterator[bytes]:
        """Raises Unavailable when the connection is lost."""

    def close(self) -> None: ...


class Form(TypedDict, total=False):
    """The form of a request and of its answer. JSON unless it says otherwise."""

    content_type: str
    accept: str
    headers: Mapping[str, str] | None


class Transport(Protocol):
    """What carries requests. Both calls raise Unavailable or Timeout when there is no answer."""

    retry: Retry
    warnings: Warnings

    def send(self, method: str, path: str, body: bytes | None = None, **form: Unpack[Form]) -> Awaitable[Answer]:
        """The answer, whatever its code, after the repetitions that are safe."""

    def stream(self, path: str, *, accept: str = JSON, seconds: float | None = None) -> Awaitable[ByteStream]:
        """A GET whose body comes bit by bit, silent for at most `seconds`. Raises for a refusal."""

    async def close(self) -> None: ...


def _form(kind: type[Object] | Resource, form: str) -> str:
    """What to ask for: of a type that has metadata and nothing else, the rest need not be sent."""
    if isinstance(kind, Resource) or len(kind.__struct_fields__) > len(Object.__struct_fields__):
        return JSON
    return f"application/json;as={form};g=meta.k8s.io;v=v1, {JSON}"


class RestClient:
    """A protocol.Client on a Transport. Use as `async with`, or close it."""

    def __init__(self, transport: Transport, *, field_manager: str = DEFAULT_MANAGER) -> None:
        self._transport = transport
        self._manager = field_manager
        # Of watches that are renewed: their connection is free in that moment, and other requests may use it.
        self.between_watches: Between | None = None

    @property
    def warnings(self) -> Warnings:
        return self._transport.warnings

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def _checked(self, method: str, path: str, body: bytes | None = None, **form: Unpack[Form]) -> bytes:
        answer = await self._transport.send(method, path, body, **form)
        return answer.check(f"{method} {path.partition('?')[0]}")

    async def get(
        self, kind: type[Object] | Resource, key: Key, *, subresource: str = "", resource_version: str = ""
    ) -> Any:
        path = object_path(resource_of(kind), key, subresource)
        body = await self._checked("GET", with_query(path, [("resourceVersion", resource_version)]))
        return codec(kind).one(body)

    async def list(self, kind: type[Object] | Resource, query: Query = ALL) -> Page[Any]:
        path = collection_path(resource_of(kind), query.namespace)
        accept = _form(kind, "PartialObjectMetadataList")
        body = await self._checked("GET", with_query(path, list_pairs(query)), accept=accept)
        return codec(kind).page(body, lenient=query.lenient)

    @asynccontextmanager
    async def watch(
        self,
        kind: type[Object] | Resource,
        query: Query = ALL,
        *,
        initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[AsyncIterator[Event[Any]]]:
        resource = resource_of(kind)
        path = collection_path(resource, query.namespace)

        async def open_(version: str, initial: bool, seconds: int) -> LineStream:
            pairs = watch_pairs(query, version, initial, seconds)
            # The server ends it after `seconds`, silent or not; a while longer and it is lost.
            accept = _form(kind, "PartialObjectMetadata")
            lasting = seconds + GRACE_SECONDS
            return LineStream(await self._transport.stream(with_query(path, pairs), accept=accept, seconds=lasting))

        watching: Watch[Any] = Watch(
            open_,
            codec(kind),
            query.resource_version,
            initial_events=initial_events,
            timeout=timeout,
            retry=self._transport.retry,
            lenient=query.lenient,
            renew=query.renew_seconds,
            between=self.between_watches if query.renew_seconds else None,
        )
        try:
            await watching.begin()
            yield watching.events()
        finally:
            watching.end()

    async def create(
        self,
        obj: Object | Mapping[str, Any],
        options: Write = DEFAULT_WRITE,
        *,
        kind: Resource | None = None,
        key: Key | None = None,
        subresource: str = "",
    ) -> Any:
        what = _kind_of(obj, kind)
        resource = resource_of(what)
        if key is not None:
            path = object_path(resource, key, subresource)
        else:
            path = collection_path(resource, _key_of(obj).namespace, write=True)
        body = encode(obj, None if subresource else resource)
        answer = await self._checked("POST", with_query(path, write_pairs(options, self._manager)), body)
        return codec(what).one(answer)

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, *, kind: Resource, subresource: str = ""
    ) -> Unstructured:
        path = with_query(object_path(kind, _key_of(obj), subresource), write_pairs(options, self._manager))
        body = encode(obj, None if subresource == "scale" else kind)
        return Unstructured(codec(kind).one(await self._checked("PUT", path, body)))

    async def patch(
        self,
        kind: type[Object] | Resource,
        key: Key,
        patch: Patch,
        options: Write = DEFAULT_WRITE,
        *,
        subresource: str = "",
    ) -> Any:
        path = with_query(object_path(resource_of(kind), key, subresource), write_pairs(options, self._manager))
        body = orjson.dumps(list(patch.operations)) if isinstance(patch, JsonPatch) else encode(patch.body, None)
        answer = await self._checked("PATCH", path, body, content_type=_PATCH_TYPES[type(patch)])
        return codec(kind).one(answer)

    async def apply(
        self,
        obj: Object | Mapping[str, Any],
        options: Write,
        *,
        kind: Resource | None = None,
        force: bool = False,
        subresource: str = "",
    ) -> Any:
        what = _kind_of(obj, kind)
        resource = resource_of(what)
        # No default for the manager: who owns the fields is the whole point of an apply.
        pairs = [*write_pairs(options, ""), ("force", "true" if force else "")]
        path = with_query(object_path(resource, _key_of(obj), subresource), pairs)
        body = encode(obj, None if subresource == "scale" else resource)
        return codec(what).one(await self._checked("PATCH", path, body, content_type=APPLY))

    async def delete(
        self,
        kind: type[Object] | Resource,
        key: Key,
        **options: Unpack[Delete],
    ) -> Unstructured:
        wished = {"uid": options.get("uid"), "resourceVersion": options.get("resource_version")}
        preconditions = {name: value for name, value in wished.items() if value}
        body = _delete_options(options, preconditions=preconditions, gracePeriodSeconds=options.get("grace_seconds"))
        answer = await self._checked("DELETE", object_path(resource_of(kind), key), body)
        return Unstructured(orjson.loads(answer))

    async def delete_all(
        self,
        kind: type[Object] | Resource,
        query: Query,
        **options: Unpack[DeleteAll],
    ) -> Unstructured:
        path = with_query(collection_path(resource_of(kind), query.namespace), list_pairs(query))
        answer = await self._checked("DELETE", path, _delete_options(options))
        return Unstructured(orjson.loads(answer))

    async def raw(self, method: str, path: str, body: bytes | None = None, **form: Unpack[Form]) -> Answer:
        """Any request, `path` with its query as it is. The answer is given whatever its code."""
        if not path.startswith("/"):
            raise BadRequest(f"path {path!r}: must start with /")
        return await self._transport.send(method, path, body, **form)

    @asynccontextmanager
    async def log(
        self,
        key: Key,
        *,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The log of a pod as it comes. A followed log may be silent for as long as it likes."""
        pairs = [
            ("container", container),
            ("follow", "true" if follow else ""),
            ("previous", "true" if previous else ""),
            ("timestamps", "true" if timestamps else ""),
            ("tailLines", "" if tail_lines is None else str(tail_lines)),
            ("sinceSeconds", "" if since_seconds is None else str(since_seconds)),
        ]
        path = with_query(_LOG.path(segment(key.namespace), segment(key.name), "log"), pairs)
        stream = await self._transport.stream(path, accept="*/*", seconds=None if follow else LOG_SECONDS)
        try:
            yield stream.chunks()
        finally:
            stream.close()


def _kind_of(obj: Object | Mapping[str, Any], kind: Resource | None) -> type[Object] | Resource:
    if isinstance(obj, Object):
        return type(obj)
    if kind is None:
        raise TypeError("kind= is needed for an object that is a mapping")
    return kind


def _key_of(obj: Object | Mapping[str, Any]) -> Key:
    if isinstance(obj, Object):
        return Key(obj.metadata.namespace, obj.metadata.name)
    meta = obj.get("metadata") or {}
    return Key(str(meta.get("namespace") or ""), str(meta.get("name") or ""))


def _delete_options(options: DeleteAll, **more: Any) -> bytes | None:
    written = {name: value for name, value in more.items() if value is not None and value != {}}
    if (propagation := options.get("propagation")) is not None:
        written["propagationPolicy"] = propagation
    if options.get("dry_run"):
        written["dryRun"] = ["All"]
    return orjson.dumps({"apiVersion": "v1", "kind": "DeleteOptions", **written}) if written else None
