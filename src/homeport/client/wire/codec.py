"""Objects to JSON and back: typed (msgspec, straight into the struct) and Unstructured (orjson)."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import msgspec
import orjson

from homeport.api.meta import Model, Object, Resource, Unstructured, wire
from homeport.client.errors import BadRequest, Internal, from_status
from homeport.client.protocol import Event, EventType, Page, Unreadable, unreadable

T = TypeVar("T")
# Decoding a long list makes so many containers that the cycle collector runs for nothing, again and again.
BIG_BYTES = 256 * 1024
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


_HEAD = ("apiVersion", "kind", "metadata")


class _ListMeta(Model):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Codec(Generic[T]):
    """How to read one kind."""

    def __init__(
        self,
        resource: Resource,
        one: Callable[[bytes], T],
        page: Callable[[bytes], Page[T]],
        version: Callable[[T], str],
    ) -> None:
        self.resource = resource
        self._one = one
        self._page = page
        self._version = version

    def lenient_one(self, body: bytes) -> T | Unreadable:
        try:
            return self._one(body)
        except msgspec.ValidationError as error:
            return unreadable(orjson.loads(body), error)

    def lenient_page(self, body: bytes) -> Page[Any]:
        """For a page that `page` refuses: item by item."""
        found = orjson.loads(body)
        meta = found.get("metadata") or {}
        return Page(
            [self.lenient_one(orjson.dumps(item)) for item in found.get("items") or ()],
            meta.get("resourceVersion", ""),
            meta.get("continue", ""),
            meta.get("remainingItemCount"),
        )

    def one(self, body: bytes) -> T:
        try:
            return self._one(body)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self._unfit(error) from None

    def page(self, body: bytes, *, lenient: bool = False) -> Page[T]:
        quiet = len(body) > BIG_BYTES and gc.isenabled()
        if quiet:
            gc.disable()
        try:
            return self._page(body)
        except (msgspec.MsgspecError, ValueError) as error:
            if lenient and isinstance(error, msgspec.ValidationError):
                return self.lenient_page(body)
            raise self._unfit(error) from None
        finally:
            if quiet:
                gc.enable()

    def event(self, line: bytes, *, lenient: bool = False) -> Event[T]:
        """Raises what an ERROR event says."""
        try:
            kind, raw = _split(line)
            if kind == "ERROR":
                raise from_status(orjson.loads(raw))
            if kind == "BOOKMARK":
                return self._bookmark(raw)
            obj = self.lenient_one(raw) if lenient else self._one(raw)
            if isinstance(obj, Unreadable):
                return Event(cast("EventType", kind), cast("T", obj), obj.resource_version)
            return Event(cast("EventType", kind), obj, self._version(obj))
        except (msgspec.MsgspecError, ValueError) as error:
            raise self._unfit(error) from None

    def _bookmark(self, raw: bytes) -> Event[T]:
        """Of its object only the metadata counts: the API server leaves required fields of the rest empty or null."""
        found = orjson.loads(raw)
        meta = found.get("metadata") or {}
        obj = self.lenient_one(orjson.dumps({key: found[key] for key in _HEAD if key in found}))
        ended = (meta.get("annotations") or {}).get(INITIAL_EVENTS_END) == "true"
        return Event("BOOKMARK", cast("T", obj), str(meta.get("resourceVersion") or ""), ended)

    def _unfit(self, error: Exception) -> Internal:
        return Internal(f"{self.resource.qualified}: the server's answer can't be read: {error}")


_split_line = msgspec.json.Decoder(_Line)


def _split(line: bytes) -> tuple[str, bytes]:
    parts = _split_line.decode(line)
    return parts.type, bytes(parts.object)


def _typed(cls: type[Object]) -> Codec[Any]:
    resource = cls.__resource__
    decode = msgspec.json.Decoder(cls).decode
    whole = msgspec.json.Decoder(
        msgspec.defstruct(f"{cls.__name__}List", [("items", list[cls] | None), ("metadata", _ListMeta)])  # type: ignore[valid-type]
    )

    def named(obj: Object) -> Object:
        # Lists of built-in kinds leave these out of their items; metadata alone comes as a kind of its own.
        if not obj.kind or obj.kind == "PartialObjectMetadata":
            obj.api_version, obj.kind = resource.api_version, resource.kind
        return obj

    def one(body: bytes) -> Object:
        return named(decode(body))

    def page(body: bytes) -> Page[Object]:
        found: Any = whole.decode(body)
        meta = found.metadata
        items = [named(item) for item in found.items or ()]
        return Page(items, meta.resource_version, meta.continue_, meta.remaining_item_count)

    return Codec(resource, one, page, lambda obj: obj.metadata.resource_version)


def _unstructured(resource: Resource) -> Codec[Unstructured]:
    api_version, kind = resource.api_version, resource.kind

    def one(body: bytes) -> Unstructured:
        return Unstructured(orjson.loads(body))

    def named(raw: dict[str, Any]) -> Unstructured:
        if "kind" in raw:
            return Unstructured(raw)
        return Unstructured({"apiVersion": api_version, "kind": kind, **raw})

    def page(body: bytes) -> Page[Unstructured]:
        found = orjson.loads(body)
        meta = found.get("metadata") or {}
        return Page(
            [named(item) for item in found.get("items") or ()],
            meta.get("resourceVersion", ""),
            meta.get("continue", ""),
            meta.get("remainingItemCount"),
        )

    return Codec(resource, one, page, lambda obj: obj.resource_version)


_codecs: dict[type[Object] | Resource, Codec[Any]] = {}


def codec(kind: type[Object] | Resource) -> Codec[Any]:
    found = _codecs.get(kind)
    if found is None:
        found = _unstructured(kind) if isinstance(kind, Resource) else _typed(kind)
        _codecs[kind] = found
    return found


def encode(obj: Object | Mapping[str, Any], resource: Resource | None) -> bytes:
    """With `resource`, apiVersion and kind are added where the object leaves them out."""
    try:
        if isinstance(obj, Object):
            if resource is not None and not (obj.kind and obj.api_version):
                obj = msgspec.structs.replace(obj, api_version=resource.api_version, kind=resource.kind)
            return orjson.dumps(wire(obj))
        if resource is not None and not ("kind" in obj and "apiVersion" in obj):
            obj = {**resource.type_meta, **obj}
        return orjson.dumps(obj)
    except (TypeError, msgspec.MsgspecError) as error:
        raise BadRequest(f"the object can't be written as JSON: {error}") from None
