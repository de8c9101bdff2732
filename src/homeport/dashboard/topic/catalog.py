"""Opens subscriptions by name."""

from __future__ import annotations

from typing import Any, Protocol

from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic, TopicError
from homeport.dashboard.topic.forest import Forest, OneTree
from homeport.dashboard.topic.log import Console, Log
from homeport.dashboard.topic.rows import Rows
from homeport.dashboard.topic.timeline import Timeline


class _Make(Protocol):
    def __call__(self, person: Person, send: Send, options: dict[str, Any], /) -> Topic: ...


_TOPICS: dict[str, _Make] = {
    "rows": Rows,
    "overview": Forest,
    "tree": OneTree,
    "timeline": Timeline,
    "log": Log,
    "console": Console,
}


def open_topic(name: str, person: Person, send: Send, options: Any) -> Topic:
    """Raises TopicError."""
    make = _TOPICS.get(name)
    if make is None or not isinstance(options, dict):
        raise TopicError(f"unknown subscription {name!r}: expected one of {', '.join(_TOPICS)}")
    return make(person, send, options)
