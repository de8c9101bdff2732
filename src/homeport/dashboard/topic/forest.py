"""The clusters: one line each for the overview, or the whole tree of one of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from homeport.api.meta import Resource, Unstructured
from homeport.app.tree.branch import Branch, Tree
from homeport.app.tree.grow import grow
from homeport.app.tree.read import ROOTS, Found, is_part, roots_of
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic
from homeport.dashboard.topic.group import grouped

_MACHINES = frozenset({"MachineDeployment", "MachinePool", "KubeadmControlPlane", "K0sControlPlane"})


class Forest(Topic):
    """Watches every kind that takes part in a cluster's life, as far as the user may."""

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._namespace = str(options.get("namespace") or "")
        self._last: Any = None

    async def prepare(self) -> None:
        self._namespace = await self.scope()
        kinds = [each for each in await self.person.kinds() if each.namespaced and is_part(each)]
        feeds = [self.follow(each, self._namespace) for each in kinds if not _is_rare(each)]
        await asyncio.gather(*(feed.settled() for feed in feeds))

    async def scope(self) -> str:
        """The namespace that is watched; '' for all."""
        return self._namespace

    async def message(self) -> Iterable[dict[str, Any]]:
        objects = [feed.objects for feed, _ in self._held]
        unreadable = sorted(feed.resource.kind for feed, _ in self._held if feed.problem)
        # In a thread: with 10,000 machines it takes a tenth of a second, in which the plane would do nothing else.
        made = await asyncio.to_thread(self._made, objects, unreadable)
        if made == self._last:
            return ()
        self._last = made
        return [made]

    def _made(self, listed: list[Sequence[Unstructured]], unreadable: list[str]) -> dict[str, Any]:
        begun = time.thread_time()
        objects = list({each.uid: each for some in listed for each in some}.values())
        found = Found(self.roots(objects), objects, unreadable)
        made = self.content(grow(found, None, memory=self.person.memory))
        self.took = time.thread_time() - begun
        return made

    def roots(self, objects: list[Unstructured]) -> list[Unstructured]:
        return roots_of(objects)

    def content(self, trees: list[Tree]) -> dict[str, Any]:
        lines = [_line(tree) for tree in trees]
        lines.sort(key=lambda each: (each["healthy"] is not False, each["namespace"], each["name"]))
        return {"clusters": lines, "problem": "; ".join(self.problems)}


class OneTree(Forest):
    """The tree of one cluster, with its equal machines grouped."""

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send, options)
        self._name = str(options.get("name") or "")
        self._kind = str(options.get("kind") or "")
        self._space = self._namespace

    async def scope(self) -> str:
        """A tenant's objects are in a namespace of their own; who may not watch all gets those in the same one."""
        return await self.person.widest(self._space)

    def roots(self, objects: list[Unstructured]) -> list[Unstructured]:
        for _, kind in ROOTS:
            for each in objects:
                if each.get("kind") == kind and (each.namespace, each.name) == (self._space, self._name):
                    return [each] if not self._kind or kind == self._kind else []
        return []

    def content(self, trees: list[Tree]) -> dict[str, Any]:
        if not trees:
            return {"tree": None, "cause": "", "problem": "; ".join(self.problems)}
        tree = trees[0]
        return {
            "tree": msgspec.to_builtins(grouped(tree.root)),
            "cause": tree.cause,
            "unreadable": tree.unreadable,
            "problem": "; ".join(self.problems),
        }


def _is_rare(kind: Resource) -> bool:
    """Templates are in no tree."""
    return kind.kind.endswith("Template") or kind.kind.endswith("TemplateChain")


def _line(tree: Tree) -> dict[str, Any]:
    root = tree.root
    machines = [each for each in root.walk() if each.kind == "Machine"]
    return {
        "kind": root.kind,
        "namespace": root.namespace,
        "name": root.name,
        "healthy": root.healthy,
        "state": root.state,
        "version": root.version or next((each.version for each in machines if each.version), ""),
        "machines": len(machines),
        "ready": sum(each.healthy is True for each in machines),
        "desired": _desired(root),
        "cause": tree.cause,
        "at": msgspec.to_builtins(tree.culprit),
        "states": dict(Counter(each.state for each in machines)),
    }


def _desired(root: Branch) -> int:
    return sum(
        int(each.replicas.rpartition(" ")[2]) for each in root.walk() if each.kind in _MACHINES and each.replicas
    )
