"""What the controllers of a workload cluster see in one pass, and how they write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import cached_property

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import AlreadyExists, Conflict, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.selector import from_label_selector
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.workload.kind import controller_uid
from homeport.sim.machine.workload.kind import NODE, POD, Json
from homeport.store import Store

MANAGER = "kube-controller-manager"


class ByOwner:
    """Objects of one kind by the UID of their controlling owner."""

    def __init__(self, objects: list[Json]) -> None:
        self._owned: dict[str, list[Unstructured]] = {}
        for obj in map(Unstructured, objects):
            for uid in controller_uid(obj):
                self._owned.setdefault(uid, []).append(obj)

    def by(self, name: str, value: str) -> list[Unstructured]:
        return self._owned.get(value, [])


class _Bucket:
    """The objects of one kind as they were at one state of the store."""

    __slots__ = ("by_owner", "decoded", "objects", "state")

    def __init__(self, state: tuple[int, int], decoded: dict[str, tuple[int, Json]]) -> None:
        self.state = state
        self.decoded = decoded
        self.objects = [obj for _, obj in decoded.values()]
        self.by_owner: ByOwner | None = None


_EMPTY = _Bucket((0, 0), {})


class Reader:
    """Objects of the store, decoded once as long as they don't change. Who reads leaves them as they are."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._buckets: dict[str, _Bucket] = {}

    def all(self, kind: Resource) -> list[Json]:
        return self._read(kind).objects

    def by_owner(self, kind: Resource) -> ByOwner:
        found = self._read(kind)
        if found.by_owner is None:
            found.by_owner = ByOwner(found.objects)
        return found.by_owner

    def one(self, kind: Resource, key: Key) -> Json | None:
        """As the last `all` of its kind saw it."""
        known = self._buckets.get(kind.qualified, _EMPTY).decoded.get(str(key))
        return None if known is None else known[1]

    def _read(self, kind: Resource) -> _Bucket:
        bucket = kind.qualified
        before = self._buckets.get(bucket, _EMPTY)
        state = self._store.state(bucket)
        if state == before.state:
            return before
        now: dict[str, tuple[int, Json]] = {}
        for record in self._store.range(bucket):
            known = before.decoded.get(record.name)
            if known is None or known[0] != record.revision:
                known = (record.revision, orjson.loads(record.value))
            now[record.name] = known
        found = self._buckets[bucket] = _Bucket(state, now)
        return found


class View:
    def __init__(
        self,
        server: EmbeddedServer,
        reader: Reader,
        clock: Clock,
        alive: Callable[[str], bool],
        later: Callable[[float], None],
        busy: Callable[[Json], bool],
        has_program: Callable[[Json], bool] = lambda container: False,
        pull_problem: Callable[[str, str], str] = lambda node, image: "",
        unready: Callable[[Json, Json], bool] = lambda pod, container: False,
    ) -> None:
        self.server = server
        self._reader = reader
        self.client = server.client(field_manager=MANAGER)
        self.clock = clock
        self.now = clock.now()
        self._alive = alive
        self._known_alive: dict[str, bool] = {}
        self.later = later
        self.busy = busy  # whether something of a Pod still runs
        self.has_program = has_program  # whether a program runs for a container
        self.pull_problem = pull_problem  # why a node can't pull an image
        self.unready = unready  # whether the readiness probe of a Pod's container fails

    # -- reading -----------------------------------------------------------------------------------------------

    def all(self, kind: Resource) -> list[Json]:
        return self._reader.all(kind)

    @cached_property
    def pods(self) -> list[Json]:
        return self.all(POD)

    @cached_property
    def nodes(self) -> dict[str, Json]:
        return {node["metadata"]["name"]: node for node in self.all(NODE)}

    def alive(self, node: str) -> bool:
        """Whether the kubelet of a node runs and reaches the API."""
        known = self._known_alive.get(node)
        if known is None:
            known = self._known_alive[node] = self._alive(node)
        return known

    def find(self, kind: Resource, key: Key) -> Json | None:
        return self._reader.one(kind, key)

    def by_owner(self, kind: Resource) -> ByOwner:
        return self._reader.by_owner(kind)

    def owned(self, objects: list[Json], owner: Json) -> list[Json]:
        uid = owner["metadata"]["uid"]
        return [
            obj for obj in objects if any(ref["uid"] == uid for ref in obj["metadata"].get("ownerReferences") or ())
        ]

    # -- writing -----------------------------------------------------------------------------------------------

    async def create(self, obj: Json, kind: Resource) -> None:
        with contextlib.suppress(AlreadyExists):
            await self.client.create(obj, kind=kind)

    async def bind(self, pod: Json, node: str) -> None:
        body = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
        with contextlib.suppress(NotFound, Conflict):
            await self.client.create(body, kind=POD, key=key_of(pod), subresource="binding")

    async def patch(self, kind: Resource, obj: Json, patch: Json, subresource: str = "") -> None:
        with contextlib.suppress(NotFound):
            await self.client.patch(kind, key_of(obj), MergePatch(patch), subresource=subresource)

    async def set_status(self, kind: Resource, obj: Json, status: Json) -> None:
        """Writes what differs; nothing if nothing does."""
        known = obj.get("status") or {}
        changed = {key: value for key, value in status.items() if known.get(key) != value}
        if changed:
            with contextlib.suppress(NotFound):
                await self.client.patch(kind, key_of(obj), MergePatch({"status": changed}), subresource="status")

    async def delete(self, kind: Resource, obj: Json, grace_seconds: int | None = None) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self.client.delete(kind, key_of(obj), uid=obj["metadata"]["uid"], grace_seconds=grace_seconds)

    @property
    def stamp(self) -> str:
        return rfc3339(self.now)


def key_of(obj: Json) -> Key:
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def matches(selector: Mapping[str, object] | None, labels: Mapping[str, str] | None) -> bool:
    return selector is not None and from_label_selector(selector).matches(labels or {})


def ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def leaving(obj: Json) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def finished(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
