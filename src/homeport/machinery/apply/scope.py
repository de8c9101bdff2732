"""One request as the field manager sees it: what it changed in each version, and whose fields those were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from homeport.machinery.apply import entry as entries_of
from homeport.machinery.apply import fieldset
from homeport.machinery.apply.compare import compare
from homeport.machinery.apply.entry import identity, make
from homeport.machinery.apply.fieldset import Trie
from homeport.machinery.apply.merge import settle
from homeport.machinery.apply.shape import Shape, shape_of
from homeport.machinery.schema.node import Schema

Json = dict[str, Any]
# (object, apiVersion) > the object and its schema in that version; None when the version is served no more.
View = Callable[[Json, str], tuple[Json, Schema | None] | None]


SYSTEM_FIELDS: Final = frozenset(
    (
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
        "resourceVersion",
    )
)  # fmt: skip
_SETTLED_LIMIT: Final = 2048


class Scope:
    """One request: the version it speaks and the fields it may own."""

    __slots__ = ("_compared", "_reset", "api_version", "shape", "subresource", "view")

    def __init__(self, shape: Shape, api_version: str, subresource: str, status: bool, view: View | None) -> None:
        self.shape = shape
        self.api_version = api_version
        self.subresource = subresource
        self.view = view
        self._compared: dict[str, tuple[Trie, Trie] | None] = {}
        self._reset: Trie | None = None
        if status and subresource == "status":
            self._reset = {"f:spec": {}, "f:metadata": {"f:labels": {}} if shape.typed else {}}
        elif status and not subresource:
            self._reset = {"f:status": {}}

    def forget(self) -> None:
        """Before another pair of objects is compared."""
        self._compared.clear()

    def kept(self, fields: Trie) -> Trie:
        """Less what this endpoint resets."""
        if self._reset is None or not fields.keys() & self._reset.keys():
            return fields
        return fieldset.recursive_difference(fields, self._reset)

    def difference(self, old: Json, new: Json, version: str) -> tuple[Trie, Trie] | None:
        """(changed or added, removed) as seen in a version; None when that version is served no more."""
        if version not in self._compared:
            self._compared[version] = self._difference(old, new, version)
        return self._compared[version]

    def _difference(self, old: Json, new: Json, version: str) -> tuple[Trie, Trie] | None:
        shape = self.shape
        if version != self.api_version and self.view is not None:
            seen = (self.view(old, version), self.view(new, version))
            if seen[0] is None or seen[1] is None:
                return None
            old, new = seen[0][0], seen[1][0]
            shape = shape_of(seen[1][1])
        elif version != self.api_version:
            return self.difference(old, new, self.api_version)
        changed, removed = compare(shape, _owned(old), _owned(new))
        return self.kept(changed), self.kept(removed)


def _owned(obj: Json) -> Json:
    """The object without the fields that never have an owner."""
    owned = dict(obj)
    owned.pop("apiVersion", None)
    owned.pop("kind", None)
    owned["metadata"] = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in SYSTEM_FIELDS}
    return owned


def updated(scope: Scope, entries: list[Json], live: Json, new: Json, manager: str, time: str) -> list[Json]:
    difference = scope.difference(live, new, scope.api_version)
    changed, removed = difference or ({}, {})
    if not changed and not removed:
        return entries
    own = (manager, "Update", scope.api_version, scope.subresource)
    after: list[Json] = []
    mine: Trie = {}
    for entry in entries:
        fields = settled(scope.shape, entry.get("fieldsV1") or {})
        if identity(entry) == own:
            mine = fieldset.difference(fields, removed)
            if not changed and mine:
                after.append(entry if mine is fields else {**entry, "fieldsV1": mine})
            continue
        kept = yielded(scope, entry, fields, live, new)
        if kept is not None:
            after.append(kept)
    if changed:
        fields = fieldset.union(mine, changed)
        if fields is not mine:  # new fields have to be written down in order
            fields = fieldset.union(mine, fieldset.ordered(changed))
        after.append(make(manager, "Update", own[2], time, fields, own[3]))
    return entries_of.arranged(entries_of.capped(after))


def yielded(scope: Scope, entry: Json, fields: Trie, live: Json, new: Json) -> Json | None:
    """An other manager's entry less what was changed or removed; None when nothing is left of it."""
    difference = scope.difference(live, new, entry.get("apiVersion", ""))
    if difference is None:
        return None
    kept = fields
    for lost in difference:
        if lost:
            kept = fieldset.difference(kept, lost)
    if kept is entry.get("fieldsV1"):
        return entry
    return {**entry, "fieldsV1": kept} if kept else None


_in_order: dict[tuple[Shape, bytes], None] = {}


def settled(shape: Shape, fields: Trie) -> Trie:
    """See merge.settle. Sets repeat over the objects of a kind, so those found in order are remembered."""
    try:
        key = (shape, orjson.dumps(fields))
    except TypeError:  # nested too deeply
        return fields
    if key in _in_order:
        return fields
    found = settle(shape, fields)
    if found is fields:
        if len(_in_order) >= _SETTLED_LIMIT:
            _in_order.clear()
        _in_order[shape, bytes(memoryview(key[1]))] = None  # without the unused part of the encoder's buffer
    return found
