"""Who owns whom, by UID: the state of garbage collection. Pure: it is told of objects and answers questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class OwnerRef(msgspec.Struct, rename="camel"):
    uid: str = ""
    kind: str = ""
    name: str = ""
    block_owner_deletion: bool | None = None


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    owner_references: list[OwnerRef] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Peek(msgspec.Struct):
    metadata: _Meta


_DECODER = msgspec.json.Decoder(_Peek)


@dataclass(slots=True)
class Node:
    uid: str
    bucket: str
    name: str  # namespace/name, or name
    owners: tuple[OwnerRef, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0] if "/" in self.name else ""


@dataclass(slots=True)
class Graph:
    nodes: dict[str, Node] = field(default_factory=dict)
    dependents: dict[str, set[str]] = field(default_factory=dict)  # owner's uid > uids; the owner may be gone

    def put(self, bucket: str, name: str, value: bytes) -> Node:
        meta = _DECODER.decode(value).metadata
        node = Node(
            meta.uid,
            bucket,
            name,
            tuple(meta.owner_references or ()),
            tuple(meta.finalizers or ()),
            bool(meta.deletion_timestamp),
        )
        old = self.nodes.get(node.uid)
        if old is not None:
            self._unlink(old)
        self.nodes[node.uid] = node
        for owner in node.owners:
            self.dependents.setdefault(owner.uid, set()).add(node.uid)
        return node

    def drop(self, value: bytes) -> Node | None:
        node = self.nodes.pop(_DECODER.decode(value).metadata.uid, None)
        if node is not None:
            self._unlink(node)
        return node

    def _unlink(self, node: Node) -> None:
        for owner in node.owners:
            held = self.dependents.get(owner.uid)
            if held is not None:
                held.discard(node.uid)
                if not held:
                    del self.dependents[owner.uid]

    def dependents_of(self, uid: str) -> list[Node]:
        return [self.nodes[d] for d in sorted(self.dependents.get(uid, ())) if d in self.nodes]

    def split_owners(self, node: Node) -> tuple[list[OwnerRef], list[OwnerRef], list[OwnerRef]]:
        """Owners that stand, that wait for their dependents to go first, and that are gone."""
        solid, waiting, gone = [], [], []
        for ref in node.owners:
            owner = self.nodes.get(ref.uid)
            if owner is None:
                gone.append(ref)
            elif owner.deleting and FOREGROUND in owner.finalizers:
                waiting.append(ref)
            else:
                solid.append(ref)
        return solid, waiting, gone

    def foreign_owners(self, node: Node) -> list[OwnerRef]:
        """References that reach into another namespace: never honoured, never a reason to delete."""
        return [
            ref
            for ref in node.owners
            if (owner := self.nodes.get(ref.uid)) is not None and owner.namespace and owner.namespace != node.namespace
        ]

    def blockers(self, node: Node) -> list[Node]:
        """Dependents that a foreground deletion of `node` has to wait for. A circle blocks nobody."""
        return [d for d in self.dependents_of(node.uid) if _blocks(d, node.uid) and not self._circular(d, node)]

    def _circular(self, dependent: Node, owner: Node) -> bool:
        """The dependent waits, perhaps by way of others, for the owner itself."""
        if not dependent.deleting:
            return False
        return any(below.uid == owner.uid for below in self._below(dependent))

    def _below(self, node: Node) -> Iterator[Node]:
        seen, todo = {node.uid}, [node]
        while todo:
            for dependent in self.dependents_of(todo.pop().uid):
                yield dependent
                if dependent.uid not in seen:
                    seen.add(dependent.uid)
                    todo.append(dependent)


def _blocks(dependent: Node, owner: str) -> bool:
    return any(ref.uid == owner and ref.block_owner_deletion for ref in dependent.owners)
