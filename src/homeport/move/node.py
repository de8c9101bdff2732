"""One object of the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.name import BLOCK_MOVE, MOVE_HIERARCHY_LABEL, MOVE_LABEL, STAYS_LABEL
from homeport.capi.object.paused import cluster_paused, has_annotation
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.move.kind import MovedKind


@dataclass(slots=True, eq=False)
class Node:
    """`owners` have to exist first, as the object carries their UIDs; the other owners should."""

    kind: MovedKind
    obj: Unstructured
    owners: set[str] = field(default_factory=set)
    soft_owners: set[str] = field(default_factory=set)
    remote_owners: set[str] = field(default_factory=set)  # of other namespaces

    @property
    def uid(self) -> str:
        return self.obj.uid

    @property
    def key(self) -> Key:
        return Key(self.obj.namespace, self.obj.name)

    @property
    def place(self) -> tuple[str, str, Key]:
        """Group, kind and name."""
        return (self.kind.resource.group, self.kind.resource.kind, self.key)

    @property
    def stays(self) -> bool:
        """Every plane creates it for itself."""
        return STAYS_LABEL in self.labels

    @property
    def version(self) -> str:
        return self.obj.resource_version

    @property
    def labels(self) -> dict[str, str]:
        return self.obj.metadata.get("labels") or {}

    @property
    def hierarchy(self) -> bool:
        return self.kind.hierarchy or MOVE_HIERARCHY_LABEL in self.labels

    @property
    def moves(self) -> bool:
        return self.kind.moves or self.hierarchy or MOVE_LABEL in self.labels

    @property
    def deleting(self) -> bool:
        return bool(self.obj.metadata.get("deletionTimestamp"))

    @property
    def blocked(self) -> bool:
        return BLOCK_MOVE in (self.obj.metadata.get("annotations") or {})

    @property
    def paused(self) -> bool:
        """By itself: a Cluster by its field, everything by the annotation."""
        return has_annotation(self.obj) or (self.kind.is_cluster and cluster_paused(self.obj))

    @property
    def spec(self) -> dict[str, Any]:
        return self.obj.get("spec") or {}

    @property
    def status(self) -> dict[str, Any]:
        return self.obj.get("status") or {}

    def reports(self, type_: str, status: str) -> bool:
        found = condition.find(self.status.get("conditions") or [], type_)
        return found is not None and found.get("status") == status

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {self.key}"
