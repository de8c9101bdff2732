"""managedFields through the life of an object: what create, update and patch leave in it, and server-side apply.

`update` is on the path of every write: it looks only at what differs between the two objects, works on the stored form
of the field sets and leaves the entries of unconcerned managers as they are.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from homeport.machinery.apply import entry as entries_of
from homeport.machinery.apply import fieldset
from homeport.machinery.apply.compare import ShapeError, compare, fields_of, named_fields
from homeport.machinery.apply.element import canonical
from homeport.machinery.apply.entry import BEFORE_FIRST_APPLY, identity, make
from homeport.machinery.apply.fieldset import SELF, Trie
from homeport.machinery.apply.merge import check, merge, remove
from homeport.machinery.apply.scope import SYSTEM_FIELDS, Scope, View, settled, updated, yielded
from homeport.machinery.apply.shape import Shape, shape_of
from homeport.machinery.schema.node import Schema

Json = dict[str, Any]
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class ApplyError(ValueError):
    """The configuration can't be applied. `code` is what the API answers with."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ApplyConflict(ValueError):
    """Other managers own fields that the configuration changes: pairs of manager and path, as people read them."""

    def __init__(self, conflicts: list[tuple[str, str]]) -> None:
        self.conflicts = conflicts
        super().__init__(self._message())
        self.message = self._message()

    def _message(self) -> str:
        if len(self.conflicts) == 1:
            ((manager, path),) = self.conflicts
            return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
        lines: dict[str, list[str]] = {}
        for manager, path in self.conflicts:
            lines.setdefault(manager, [f"conflicts with {manager}:"]).append(f"- {path}")
        text = "\n".join(line for found in lines.values() for line in found)
        return f"Apply failed with {len(self.conflicts)} conflicts: {text}"

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        """(reason, message, field) of each conflict."""
        return [("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in self.conflicts]


def update(
    live: Json | None,
    new: Json,
    *,
    schema: Schema | None,
    api_version: str,
    manager: str,
    time: str,
    subresource: str = "",
    status: bool = True,
    view: View | None = None,
) -> None:
    """Sets `new`'s managedFields after a create (live None), update or patch.

    `status`: the kind has a status subresource, so the main resource owns no status and /status nothing else.
    """
    metadata: Json = new.setdefault("metadata", {})
    before: list[Json] = ((live or {}).get("metadata") or {}).get("managedFields") or []
    scope = Scope(shape_of(schema), api_version, subresource, status, view)
    entries = _chosen(before, metadata.get("managedFields"), scope)
    if live is not None and not entries:
        metadata.pop("managedFields", None)  # an object whose managers were reset stays untracked until an apply
        return
    try:
        after = updated(scope, entries, live or {}, new, manager or "unknown", time)
    except (ShapeError, RecursionError):  # nested deeper than the fields of anything real
        after = before
    if after:
        metadata["managedFields"] = after
    else:
        metadata.pop("managedFields", None)


def _chosen(before: list[Json], given: Any, scope: Scope) -> list[Json]:
    """The entries to go on from: a client may edit them, but not through a subresource and not by leaving them out."""
    if scope.subresource or given is None or given is before or given == before:
        return before
    if entries_of.is_reset(given) and (given or scope.shape.typed):
        return []  # an empty list is lost on its way into a custom object, so there only [{}] asks for it
    return entries_of.read(given) or before


def apply(
    live: Json | None,
    applied: Json,
    *,
    schema: Schema | None,
    api_version: str,
    manager: str,
    time: str,
    force: bool = False,
    subresource: str = "",
    status: bool = True,
    kind: str = "",
    view: View | None = None,
) -> Json:
    """The object after a server-side apply of `applied`, managedFields included. Neither input is changed."""
    scope = Scope(shape_of(schema), api_version, subresource, status, view)
    try:
        return _applied(scope, live, applied, manager, time, force, kind)
    except RecursionError:
        raise ApplyError("the configuration is nested too deeply to be applied", 400) from None


def _applied(scope: Scope, live: Json | None, applied: Json, manager: str, time: str, force: bool, kind: str) -> Json:
    api_version = scope.api_version
    _check_applied(scope.shape, applied, api_version, kind)
    base = _without_managed(live or {})
    entries: list[Json] = ((live or {}).get("metadata") or {}).get("managedFields") or []
    if live is not None and not entries:
        entries = updated(scope, [], {}, base, BEFORE_FIRST_APPLY, time)
        scope.forget()
    step = _Apply(scope, base, applied, entries, manager, time)
    try:
        result = step.run(force)
    except ApplyConflict:
        if manager != "kubectl" or live is None:
            raise
        result = _after_client_side(step, live, api_version)
    if manager == "kubectl":
        _refresh_last_applied(result, applied)
    return result


def _check_applied(shape: Shape, applied: Json, api_version: str, kind: str) -> None:
    metadata = applied.get("metadata") or {}
    group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
    named = f"{group}/{version}, Kind={applied.get('kind', '')}"
    if applied.get("apiVersion") != api_version or (kind and applied.get("kind") != kind):
        raise ApplyError(f"invalid object type: {named}", 400)
    if metadata.get("managedFields") is not None:
        raise ApplyError("metadata.managedFields must be nil", 400)
    errors = check(shape, applied)
    if errors:
        text = errors[0] if len(errors) == 1 else "\n  ".join(["errors:", *errors])
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {named}"
        raise ApplyError(f"failed to create typed patch object ({where}): {text}", 500)


def _without_managed(obj: Json) -> Json:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


class _Apply:
    """One apply: merge, drop what this manager applied before and no longer does, then see whose fields changed."""

    def __init__(self, scope: Scope, live: Json, applied: Json, entries: list[Json], manager: str, time: str) -> None:
        self.scope = scope
        self.live = live
        self.manager = manager
        self.time = time
        own = (manager, "Apply", "", scope.subresource)
        self.mine = next((entry for entry in entries if identity(entry) == own), None)
        self.others = [entry for entry in entries if identity(entry) != own]
        self.fields = _stripped(scope.kept(fields_of(scope.shape, applied)))
        try:
            self.merged = self._pruned(merge(scope.shape, live, applied) if live else applied)
        except ShapeError as error:
            raise ApplyError(f"failed to merge config: {error}", 500) from None
        self.changes = scope.difference(live, self.merged, scope.api_version) or ({}, {})

    def _pruned(self, merged: Json) -> Json:
        shape = self.scope.shape
        last = settled(shape, self.mine.get("fieldsV1") or {}) if self.mine else {}
        if not fieldset.difference(last, self.fields):
            return merged
        named = named_fields(shape, last)
        everything = named_fields(shape, fields_of(shape, merged))
        owned = self.fields
        for entry in self.others:
            owned = fieldset.union(owned, entry.get("fieldsV1") or {})
        bare = remove(shape, merged, named) or {}
        left = named_fields(shape, fields_of(shape, bare))
        kept = fieldset.union(left, named_fields(shape, owned))
        bare = remove(shape, merged, fieldset.difference(everything, kept)) or {}
        left = named_fields(shape, fields_of(shape, bare))
        gone = fieldset.intersection(fieldset.difference(everything, left), named)
        found: Json = remove(shape, merged, gone) or {}
        return found

    def conflicts(self) -> list[tuple[Json, tuple[str, ...]]]:
        found = []
        for entry in sorted(self.others, key=identity):
            difference = self.scope.difference(self.live, self.merged, entry.get("apiVersion", ""))
            lost = fieldset.intersection(entry.get("fieldsV1") or {}, difference[0]) if difference else {}
            found += [(entry, path) for path in fieldset.paths(lost)]
        return found

    def run(self, force: bool) -> Json:
        if not force and (found := self.conflicts()):
            raise ApplyConflict([(entries_of.printed(entry), fieldset.show_path(path)) for entry, path in found])
        after = []
        for entry in self.others:
            fields = settled(self.scope.shape, entry.get("fieldsV1") or {})
            kept = yielded(self.scope, entry, fields, self.live, self.merged)
            if kept is not None:
                after.append(kept)
        if self.fields:
            time = self.time if self.live != self.merged else (self.mine or {}).get("time", "")
            fields = fieldset.ordered(self.fields)
            after.append(make(self.manager, "Apply", self.scope.api_version, time, fields, self.scope.subresource))
        metadata = {key: value for key, value in self.merged.get("metadata", {}).items() if key != "managedFields"}
        if after:
            metadata["managedFields"] = entries_of.arranged(after)
        return {**self.merged, "metadata": metadata}


def _stripped(fields: Trie) -> Trie:
    kept = {step: node for step, node in fields.items() if step not in ("f:apiVersion", "f:kind")}
    metadata = kept.pop("f:metadata", None)
    owned = {step: node for step, node in (metadata or {}).items() if step[2:] not in SYSTEM_FIELDS and step != SELF}
    return {"f:metadata": owned, **kept} if owned else kept


def _after_client_side(step: _Apply, live: Json, api_version: str) -> Json:
    """kubectl may take over, without force, the fields that its own client-side apply set and nobody changed since."""
    allowed = _last_applied_fields(step.scope.shape, live, api_version)
    rest = [(entry, path) for entry, path in step.conflicts() if not fieldset.has(allowed, path)]
    if rest:
        raise ApplyConflict([(entries_of.printed(entry), fieldset.show_path(path)) for entry, path in rest])
    return step.run(force=True)


def _last_applied_fields(shape: Shape, live: Json, api_version: str) -> Trie:
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        last = orjson.loads(text or "null")
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return {}
        changed, removed = compare(shape, last, live)
        return fieldset.difference(fieldset.difference(fields_of(shape, last), changed), removed)
    except (orjson.JSONDecodeError, ShapeError):
        return {}


def _refresh_last_applied(result: Json, applied: Json) -> None:
    annotations = result["metadata"].get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    metadata = dict(applied.get("metadata") or {})
    if "annotations" in metadata:
        metadata["annotations"] = {k: v for k, v in (metadata["annotations"] or {}).items() if k != LAST_APPLIED}
    text = canonical({**applied, "metadata": metadata}) + "\n"
    result["metadata"]["annotations"] = {**annotations, LAST_APPLIED: text}
