"""The owner graph of garbage collection, by UID. Pure: callers add and remove objects, and ask what can be deleted.

Only objects that have owners, or whose deletion waits for dependents, are in it. All others cost a search for two
words in their bytes when they change, and no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class OwnerRef(msgspec.Struct, rename="camel", frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    owner_references: list[OwnerRef] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Peek(msgspec.Struct):
    metadata: Meta


_DECODER = msgspec.json.Decoder(_Peek)


def peek(value: bytes) -> Meta:
    """The few fields that decide about life and death, without decoding the rest."""
    return _DECODER.decode(value).metadata


def concerns(value: bytes) -> bool:
    """Whether an object has owners or waits for its dependents. May say yes in vain, never no."""
    return b'"ownerReferences"' in value or (
        b'"deletionTimestamp"' in value and (b'"foregroundDeletion"' in value or b'"orphan"' in value)
    )


@dataclass(slots=True)
class Node:
    uid: str
    bucket: str
    name: str  # namespace/name, or name
    revision: int
    owners: tuple[OwnerRef, ...] = ()
    deleting: bool = False
    foreground: bool = False  # has the finalizer of that name
    orphan: bool = False

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0] if "/" in self.name else ""

    @property
    def waits(self) -> bool:
        """It is to go after its dependents."""
        return self.deleting and self.foreground

    def blocks(self, owner: Node) -> bool:
        """Whether `owner`, deleted in the foreground, has to wait for this one to go."""
        if owner.namespace and owner.namespace != self.namespace:
            return False
        return any(ref.uid == owner.uid and ref.block_owner_deletion for ref in self.owners)


@dataclass(slots=True)
class _Owned:
    """What refers to one owner. References that read the same are kept once."""

    dependents: dict[str, None] = field(default_factory=dict)  # uids, in the order of their appearance
    refs: dict[OwnerRef, OwnerRef] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    nodes: dict[str, Node] = field(default_factory=dict)
    _owned: dict[str, _Owned] = field(default_factory=dict)  # by the owner's uid; the owner may be gone

    def put(self, bucket: str, name: str, revision: int, value: bytes) -> tuple[Node | None, Node | None]:
        """Takes the newest state of an object; gives the node before and now. None: it does not concern us."""
        meta = peek(value)
        old = self.nodes.pop(meta.uid, None)
        node = self._node(bucket, name, revision, meta)
        if node is not None:
            self._link(node)
        if old is not None:
            self._unlink(old, node)
        return old, node

    def _node(self, bucket: str, name: str, revision: int, meta: Meta) -> Node | None:
        finalizers = meta.finalizers or ()
        foreground, orphan = FOREGROUND in finalizers, ORPHAN in finalizers
        deleting = bool(meta.deletion_timestamp)
        if not meta.owner_references and not (deleting and (foreground or orphan)):
            return None
        owners = tuple(meta.owner_references or ())
        return Node(meta.uid, bucket, name, revision, owners, deleting, foreground, orphan)

    def _link(self, node: Node) -> None:
        self.nodes[node.uid] = node
        shared = []
        for ref in node.owners:
            held = self._owned.setdefault(ref.uid, _Owned())
            held.dependents[node.uid] = None
            shared.append(held.refs.setdefault(ref, ref))
        node.owners = tuple(shared)

    def _unlink(self, old: Node, new: Node | None) -> None:
        kept = {ref.uid for ref in new.owners} if new is not None else ()
        for ref in old.owners:
            held = self._owned.get(ref.uid)
            if held is not None and ref.uid not in kept:
                held.dependents.pop(old.uid, None)
                if not held.dependents:
                    del self._owned[ref.uid]

    def drop(self, uid: str) -> Node | None:
        node = self.nodes.pop(uid, None)
        if node is not None:
            self._unlink(node, None)
        return node

    def has_dependents(self, uid: str) -> bool:
        return uid in self._owned

    def dependents(self, uid: str) -> list[Node]:
        held = self._owned.get(uid)
        return [self.nodes[d] for d in held.dependents] if held is not None else []

    def _each_dependent(self, uid: str) -> Iterator[Node]:
        held = self._owned.get(uid)
        for dependent in held.dependents if held is not None else ():
            yield self.nodes[dependent]

    def blocked(self, node: Node) -> bool:
        """Whether a foreground deletion of `node` has to wait for a dependent. Cycles never block."""
        circle: set[str] | None = None
        for dependent in self._each_dependent(node.uid):
            if not dependent.blocks(node):
                continue
            if not dependent.waits:
                return True
            if circle is None:
                circle = self._waiting_for(node)
            if dependent.uid not in circle:
                return True
        return False

    def _waiting_for(self, node: Node) -> set[str]:
        """All that wait for `node` to go, directly or by way of others."""
        found: set[str] = set()
        todo = [node]
        while todo:
            current = todo.pop()
            for ref in current.owners:
                owner = self.nodes.get(ref.uid)
                if owner is not None and owner.uid not in found and owner.waits and current.blocks(owner):
                    found.add(owner.uid)
                    todo.append(owner)
        return found
