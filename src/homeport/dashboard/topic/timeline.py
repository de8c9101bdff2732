"""What happened, newest first: Events, which outlive their objects by an hour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic

_EVENTS = Resource("", "v1", "Event", "events")
_MOST = 500


class Timeline(Topic):
    """Of one namespace or all. `about` keeps what concerns one object, by kind and name, or names that begin so."""

    gather_seconds = 0.3

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._namespace = str(options.get("namespace") or "")
        self._about = str(options.get("about") or "")
        self._last: Any = None

    async def prepare(self) -> None:
        feed = self.follow(_EVENTS, self._namespace)
        await feed.settled()

    async def message(self) -> Iterable[dict[str, Any]]:
        entries = [entry(each) for feed, _ in self._held for each in feed.objects]
        if self._about:
            entries = [each for each in entries if each["name"].startswith(self._about)]
        entries.sort(key=lambda each: str(each["time"]), reverse=True)
        made = {"entries": entries[:_MOST], "problem": "; ".join(self.problems)}
        if made == self._last:
            return ()
        self._last = made
        return [made]


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
