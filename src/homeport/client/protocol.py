"""The one interface to a Kubernetes API. LocalClient (in process) and HttpClient (over the wire) both are a Client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, Unpack, overload

from homeport.api.meta import Object, Resource, Unstructured

O = TypeVar("O", bound=Object)
T_co = TypeVar("T_co", covariant=True)

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class Key(NamedTuple):
    """Namespace and name: what a queue carries. Cluster-wide objects have namespace ''.

    A tuple, because queues and caches hash and compare it dozens of times per reconcile.
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Event(Generic[T_co]):
    """A change. A BOOKMARK carries only a resourceVersion (and, after the initial events, the mark of their end)."""

    type: EventType
    object: T_co
    resource_version: str
    initial_events_end: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    items: Sequence[T_co]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class MergePatch:
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JsonPatch:
    operations: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """Built-in kinds only."""

    body: Mapping[str, Any]


Patch = MergePatch | JsonPatch | StrategicPatch


@dataclass(frozen=True, slots=True)
class Write:
    """Options of every write."""

    field_manager: str = ""
    dry_run: bool = False
    field_validation: Literal["", "Strict", "Warn", "Ignore"] = ""


DEFAULT_WRITE = Write()


class DeleteAll(TypedDict, total=False):
    """Options of every delete."""

    propagation: Propagation | None
    dry_run: bool


class Delete(DeleteAll, total=False):
    """Options of the delete of one object. With `uid` or `resource_version` only that very object, or state, goes."""

    uid: str
    resource_version: str
    grace_seconds: int | None


@dataclass(frozen=True, slots=True)
class Query:
    """Options of list and watch. namespace '' means all namespaces.

    `lenient`: an object that does not fit its type comes as Unreadable, instead of making everything else unreadable.
    `renew_seconds`: a watch over HTTP ends after this time and is asked for again on the same connection, so that the
    server answers regularly; 0: after minutes.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    match: Literal["", "Exact", "NotOlderThan"] = ""
    limit: int = 0
    continue_: str = ""
    lenient: bool = False
    renew_seconds: int = 0


class Unreadable(Unstructured):
    """An object as the server has it, which does not fit the type that was asked for."""

    error: str = ""


def unreadable(raw: dict[str, Any], error: Exception) -> Unreadable:
    made = Unreadable(raw)
    made.error = str(error)
    return made


ALL = Query()


class Client(Protocol):
    """`kind` is a type of homeport.api (the result has that type) or a Resource (the result is Unstructured).

    Every method raises an ApiError of client/errors.py. There is no typed PUT: decoding drops undeclared fields, so
    typed objects are written by patch or apply; `replace` takes Unstructured alone.
    """

    @overload
    async def get(self, kind: type[O], key: Key, *, subresource: str = "", resource_version: str = "") -> O: ...
    @overload
    async def get(
        self, kind: Resource, key: Key, *, subresource: str = "", resource_version: str = ""
    ) -> Unstructured: ...

    @overload
    async def list(self, kind: type[O], query: Query = ALL) -> Page[O]: ...
    @overload
    async def list(self, kind: Resource, query: Query = ALL) -> Page[Unstructured]: ...

    @overload
    def watch(
        self, kind: type[O], query: Query = ALL, *, initial_events: bool = False, timeout: float | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Event[O]]]: ...
    @overload
    def watch(
        self, kind: Resource, query: Query = ALL, *, initial_events: bool = False, timeout: float | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Event[Unstructured]]]:
        """Changes after `query.resource_version`, bookmarks included. Ends when the server's timeout does or raises
        Expired; resumption after a lost connection is done inside (from the last seen resourceVersion)."""

    @overload
    async def create(self, obj: O, options: Write = DEFAULT_WRITE) -> O: ...
    @overload
    async def create(
        self,
        obj: Mapping[str, Any],
        options: Write = DEFAULT_WRITE,
        *,
        kind: Resource,
        key: Key | None = None,
        subresource: str = "",
    ) -> Unstructured:
        """With `key` and `subresource`: POST to a subresource (token, eviction, ...)."""

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, *, kind: Resource, subresource: str = ""
    ) -> Unstructured: ...

    @overload
    async def patch(
        self, kind: type[O], key: Key, patch: Patch, options: Write = DEFAULT_WRITE, *, subresource: str = ""
    ) -> O: ...
    @overload
    async def patch(
        self, kind: Resource, key: Key, patch: Patch, options: Write = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Unstructured: ...

    @overload
    async def apply(self, obj: O, options: Write, *, force: bool = False, subresource: str = "") -> O: ...
    @overload
    async def apply(
        self, obj: Mapping[str, Any], options: Write, *, kind: Resource, force: bool = False, subresource: str = ""
    ) -> Unstructured:
        """Server-side apply. `options.field_manager` is required."""

    async def delete(self, kind: type[Object] | Resource, key: Key, **options: Unpack[Delete]) -> Unstructured:
        """The answer is a Status when the object is gone, or the object while finalizers hold it."""

    async def delete_all(
        self, kind: type[Object] | Resource, query: Query, **options: Unpack[DeleteAll]
    ) -> Unstructured: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Warnings:
    """Warning headers of the answers, oldest first, each text once. Both clients have one as `.warnings`."""

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)
