"""The clusters: one line each for the overview, or the whole tree of one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from homeport.app.tree.read import ROOTS
from homeport.app.tree.structure import Item
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic
from homeport.dashboard.tree.live import LiveTrees
from homeport.dashboard.tree.shared import SharedTrees

_BRIEF = ("kind", "namespace", "name", "healthy", "state", "cause")
_BRIEF_GATHER_SECONDS = 1.0


class Forest(Topic):
    """Until all objects are read, `reading` is set, and machines are counted as their owners report them.
    `brief`: names and health alone, at most once a second while much changes."""

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._namespace = str(options.get("namespace") or "")
        self._brief = bool(options.get("brief"))
        if self._brief:
            self.gather_seconds = _BRIEF_GATHER_SECONDS
        self._shared: SharedTrees | None = None
        self._last: Any = None

    async def prepare(self) -> None:
        self._shared = self.person.trees(await self.scope(), self.wake)
        await self._shared.begun()

    async def scope(self) -> str:
        """The namespace that is watched; '' for all."""
        return self._namespace

    def close(self) -> None:
        super().close()
        if self._shared is not None:
            self.person.leave_trees(self._shared, self.wake)
            self._shared = None

    async def message(self) -> Iterable[dict[str, Any]]:
        shared = self._shared
        assert shared is not None
        self.took = await shared.refresh()
        made = self.content(shared) | {"problem": "; ".join(shared.problems), "reading": not shared.complete}
        if made == self._last:
            return ()
        self._last = made
        return [made]

    def content(self, shared: SharedTrees) -> dict[str, Any]:
        lines = [_line(shared.trees, each, shared.complete) for each in shared.trees.structure.roots()]
        lines.sort(key=lambda each: (each["healthy"] is not False, each["namespace"], each["name"]))
        if self._brief:
            lines = [{name: each[name] for name in _BRIEF} for each in lines]
        return {"clusters": lines, "denied": shared.denied}


class OneTree(Forest):
    """The tree of one cluster, with its equal machines grouped."""

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send, options)
        self._name = str(options.get("name") or "")
        kind = str(options.get("kind") or "")
        self._kinds = [kind] if kind else [each for _, each in ROOTS]

    async def scope(self) -> str:
        """A tenant's objects are in a namespace of their own; who may not watch all gets those in the same one."""
        return await self.widest(self._namespace)

    def content(self, shared: SharedTrees) -> dict[str, Any]:
        found = (shared.trees.structure.find(kind, self._namespace, self._name) for kind in self._kinds)
        item = next((each for each in found if each is not None), None)
        if item is None:
            return {"tree": None, "cause": ""}
        tree = shared.trees.tree(item, shared.unreadable)
        return {"tree": msgspec.to_builtins(tree.root), "cause": tree.cause, "unreadable": tree.unreadable}


def _line(trees: LiveTrees, item: Item, complete: bool) -> dict[str, Any]:
    digest, facts = trees.digest(item), item.facts
    cause = trees.cause(item)
    counts = digest.counts
    return {
        "kind": item.kind,
        "namespace": item.object.namespace,
        "name": item.name,
        "healthy": facts.healthy,
        "state": facts.state,
        "version": facts.version or digest.version,
        "machines": counts.machines if complete else counts.reported,
        "ready": counts.ready if complete else counts.reported_ready,
        "desired": counts.desired,
        "cause": "" if cause is None else cause.sentence,
        "since": "" if cause is None else cause.said.since,
        "at": None if cause is None else msgspec.to_builtins(cause.at),
    }
