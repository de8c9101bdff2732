"""How an owner stands: looked up where the reference says it is, in the store, now."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum

from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.graph import FOREGROUND, Node, OwnerRef, peek

_REMEMBERED = 10_000


class OwnerState(Enum):
    SOLID = "stands"
    WAITING = "waits for its dependents to go first"
    GONE = "is gone"
    FOREIGN = "is in another namespace"  # not honoured, and never a reason to delete
    FOREIGN_GONE = "was in another namespace and is gone"
    MISPLACED = "is namespaced while its dependent is not"  # such a reference can't be meant
    UNSERVED = "is of a kind that is not served here"  # it is unknown whether it exists


class Owners:
    def __init__(self, server: EmbeddedServer) -> None:
        self._store = server.store
        self._catalog = server.catalog
        # An owner has many dependents: what its bytes said is remembered by revision.
        self._seen: dict[tuple[str, str], tuple[int, str, bool]] = {}  # bucket, name > revision, uid, waits
        self._gone: OrderedDict[str, str] = OrderedDict()  # uid > namespace

    def went(self, uid: str, name: str) -> None:
        """An owner was seen going: no look-up is needed to know that it is gone."""
        self._gone[uid] = name.partition("/")[0] if "/" in name else ""
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def forget(self, bucket: str, name: str) -> None:
        self._seen.pop((bucket, name), None)

    def standing(self, node: Node, ref: OwnerRef) -> OwnerState:
        if (was := self._gone.get(ref.uid)) is not None:
            return OwnerState.FOREIGN_GONE if was and was != node.namespace else OwnerState.GONE
        served = self._catalog.by_kind(ref.group, ref.kind)
        if served is None:
            return OwnerState.UNSERVED
        if not served.namespaced:
            return self._look(served.bucket, ref.name, ref.uid) or OwnerState.GONE
        if not node.namespace:
            return OwnerState.MISPLACED
        found = self._look(served.bucket, f"{node.namespace}/{ref.name}", ref.uid)
        if found is not None:
            return found
        return OwnerState.FOREIGN if self._elsewhere(served.bucket, ref) else OwnerState.GONE

    def _elsewhere(self, bucket: str, ref: OwnerRef) -> bool:
        namespaces = (record.name for record in self._store.range("namespaces"))
        return any(self._look(bucket, f"{namespace}/{ref.name}", ref.uid) for namespace in namespaces)

    def _look(self, bucket: str, name: str, uid: str) -> OwnerState | None:
        """None: no object with that UID exists. An object of the same name with another UID does not count."""
        record = self._store.get(bucket, name)
        if record is None:
            return None
        key = (bucket, name)
        seen = self._seen.get(key)
        if seen is None or seen[0] != record.revision:
            meta = peek(record.value)
            waits = bool(meta.deletion_timestamp) and FOREGROUND in (meta.finalizers or ())
            seen = self._seen[key] = (record.revision, meta.uid, waits)
        if seen[1] != uid:
            return None
        return OwnerState.WAITING if seen[2] else OwnerState.SOLID
