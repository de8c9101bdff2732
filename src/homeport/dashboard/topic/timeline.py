"""What happened, newest first: Events, which outlive their objects by an hour.

Of one object and what belongs to it, also its conditions and who changed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.app.tree.read import is_part
from homeport.capi.object.summary import conditions_of
from homeport.client.errors import ApiError
from homeport.client.protocol import Key
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic
from homeport.dashboard.topic.users import Users, attributed

_EVENTS = Resource("", "v1", "Event", "events")
_MOST = 500
_PROVIDERS = "infrastructure."
_MOST_FIELDS = 6
_MOST_READ = 60
_AT_ONCE = 8


class Timeline(Topic):
    """Of one namespace or all. `about` keeps what concerns one object, by kind and name, or names that begin so;
    `objects` adds what these objects say themselves."""

    gather_seconds = 0.3

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._namespace = str(options.get("namespace") or "")
        self._about = str(options.get("about") or "")
        self._objects = bool(options.get("objects")) and bool(self._about)
        self._read: dict[str, tuple[int, Unstructured | None]] = {}  # by UID: generation, and the object as it was then
        self._last: Any = None
        self._users = Users(person, self._namespace)

    async def prepare(self) -> None:
        feeds = [self.follow(_EVENTS, self._namespace)]
        if self._objects:
            scope = await self.widest(self._namespace)  # where trees listen, too: the watches are shared
            kinds = [each for each in await self.person.kinds() if each.namespaced and is_part(each)]
            feeds += [self.follow(each, scope) for each in kinds]
        await asyncio.gather(*(feed.settled() for feed in feeds))

    async def message(self) -> Iterable[dict[str, Any]]:
        (events, _), *others = self._held
        entries = [entry(each) for each in events.objects]
        if self._about:
            entries = [each for each in entries if each["name"].startswith(self._about)]
        mine = [(feed.resource, each) for feed, _ in others for each in feed.objects if self._concerns(each)]
        entries += [each for _, obj in mine for each in conditions(obj)]
        users = await self._users.read(self.wake)
        entries += attributed(changes(await self._managed(mine)), users.writes, self._about)
        entries.sort(key=lambda each: str(each["time"]), reverse=True)
        made = {"entries": entries[:_MOST], "total": len(entries), "problem": events.problem, "users": users.known}
        if made == self._last:
            return ()
        self._last = made
        return [made]

    async def _managed(self, objects: Sequence[tuple[Resource, Unstructured]]) -> list[Unstructured]:
        """The objects with their managed fields, which watches leave out. What users made comes first."""
        first = sorted(objects, key=lambda each: bool(each[1].metadata.get("ownerReferences")))[:_MOST_READ]
        shown = {obj.uid for _, obj in first}
        self._read = {uid: read for uid, read in self._read.items() if uid in shown}
        stale = [each for each in first if self._read.get(each[1].uid, (-1, None))[0] != _generation(each[1])]
        for begin in range(0, len(stale), _AT_ONCE):
            await asyncio.gather(*(self._get(kind, obj) for kind, obj in stale[begin : begin + _AT_ONCE]))
        found = (self._read.get(obj.uid, (0, None))[1] for _, obj in first)
        return [each for each in found if each is not None]

    async def _get(self, kind: Resource, obj: Unstructured) -> None:
        try:
            read = await self.person.client.get(kind, Key(obj.namespace, obj.name))
        except ApiError:  # it is gone, or may be watched and not read
            read = None
        if read is not None:
            read.setdefault("apiVersion", kind.api_version)
            read.setdefault("kind", kind.kind)
        self._read[obj.uid] = (_generation(obj), read)

    def _concerns(self, obj: Unstructured) -> bool:
        return obj.name.startswith(self._about) and obj.namespace == self._namespace


def _generation(obj: Unstructured) -> int:
    return int(obj.metadata.get("generation") or 0)


def entry(event: Unstructured) -> dict[str, Any]:
    about = event.get("involvedObject") or event.get("regarding") or {}
    series = event.get("series") or {}
    source = event.get("source") or {}
    when = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.metadata.get("creationTimestamp")
    )
    return {
        "uid": event.uid,
        "source": "provider" if str(about.get("apiVersion", "")).startswith(_PROVIDERS) else "event",
        "time": when,
        "kind": about.get("kind", ""),
        "namespace": about.get("namespace", ""),
        "name": about.get("name", ""),
        "apiVersion": about.get("apiVersion", ""),
        "type": event.get("type", ""),
        "reason": event.get("reason", ""),
        "message": event.get("message") or event.get("note") or "",
        "count": series.get("count") or event.get("count") or 1,
        "by": event.get("reportingComponent") or source.get("component") or "",
    }


def conditions(obj: Unstructured) -> Iterator[dict[str, Any]]:
    """The latest change of each condition."""
    for each in conditions_of(obj):
        bad = each.get("status") == "False" and bool(each.get("message"))
        yield _own(obj, str(each.get("type")), each.get("lastTransitionTime")) | {
            "source": "condition",
            "type": "Warning" if bad else "Normal",
            "reason": f"{each.get('type')} is {each.get('status')}",
            "message": " ".join(str(each.get("message") or each.get("reason") or "").split()),
            "by": "",
        }


def changes(objects: Sequence[Unstructured]) -> Iterator[dict[str, Any]]:
    """Who wrote which fields last, from the managed fields. Controllers are left out: they write the status, too."""
    managed = [(obj, each) for obj in objects for each in obj.metadata.get("managedFields") or ()]
    controllers = {each.get("manager") for _, each in managed if each.get("subresource") == "status"}
    for obj, each in managed:
        manager = str(each.get("manager") or "")
        if manager in controllers or each.get("subresource"):
            continue
        fields = list(_fields(each.get("fieldsV1") or {}))
        more = f" and {len(fields) - _MOST_FIELDS} more" if len(fields) > _MOST_FIELDS else ""
        yield _own(obj, manager, each.get("time")) | {
            "source": "change",
            "reason": "Applied" if each.get("operation") == "Apply" else "Changed",
            "message": f"fields: {', '.join(fields[:_MOST_FIELDS])}{more}",
            "by": manager,
        }


def _own(obj: Unstructured, what: str, time: Any) -> dict[str, Any]:
    return {
        "uid": f"{obj.uid}/{what}/{time}",
        "time": time or "",
        "kind": str(obj.get("kind") or ""),
        "namespace": obj.namespace,
        "name": obj.name,
        "apiVersion": str(obj.get("apiVersion") or ""),
        "type": "Normal",
        "count": 1,
    }


def _fields(found: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Names of the fields, two levels deep: `spec.replicas`."""
    for key, inner in found.items():
        if not key.startswith("f:"):
            continue
        name = f"{path}{key[2:]}"
        if not path and isinstance(inner, Mapping) and any(each.startswith("f:") for each in inner):
            yield from _fields(inner, f"{name}.")
        else:
            yield name
