"""The entries of metadata.managedFields: reading, checking, ordering and capping them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from homeport.machinery.apply import fieldset
from homeport.machinery.apply.element import ElementError, canonical
from homeport.machinery.apply.fieldset import Trie

Json = dict[str, Any]
Identity = tuple[str, str, str, str]  # manager, operation, apiVersion ('' for Apply), subresource

MAX_UPDATE_MANAGERS: Final = 10
ANCIENT: Final = "ancient-changes"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
_KNOWN: Final = {"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"}


class Problem(NamedTuple):
    """Why managedFields that a client sent are refused."""

    reason: str
    message: str
    field: str


def identity(entry: Mapping[str, Any]) -> Identity:
    """One applier has one entry, whatever version it applies in; an updater has one per version."""
    operation = entry.get("operation", "")
    version = "" if operation == "Apply" else entry.get("apiVersion", "")
    return entry.get("manager", ""), operation, version, entry.get("subresource", "")


def make(manager: str, operation: str, api_version: str, time: str, fields: Trie, subresource: str) -> Json:
    entry: Json = {"manager": manager, "operation": operation, "apiVersion": api_version}
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if subresource:
        entry["subresource"] = subresource
    return entry


def arranged(entries: Iterable[Json]) -> list[Json]:
    """Appliers first, then by age."""
    return sorted(entries, key=_place)


def _place(entry: Json) -> tuple[str, ...]:
    manager, operation, _, subresource = identity(entry)
    return operation, entry.get("time") or "", manager, entry.get("apiVersion", ""), subresource


def is_reset(given: object) -> bool:
    """`[]` and `[{}]` ask to forget all managers."""
    return isinstance(given, list) and (not given or (len(given) == 1 and given[0] == {}))


def read(given: object) -> list[Json] | None:
    """Entries that a client sent, in canonical form; None when they can't be understood (the stored ones stay)."""
    if not isinstance(given, list):
        return None
    found: dict[Identity, Json] = {}
    for entry in given:
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return None
        if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
            return None
        try:
            fields = fieldset.parse(entry.get("fieldsV1") or {})
        except ElementError:
            return None
        kept = {key: value for key, value in entry.items() if key in _KNOWN and value not in (None, "")}
        found[identity(entry)] = {**kept, "fieldsV1": fields}
    return list(found.values())


def problems(given: object, path: str = "metadata.managedFields") -> list[Problem]:
    """What validation refuses with 422."""
    found: list[Problem] = []
    for index, entry in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(entry, dict):
            continue
        here = f"{path}[{index}]"
        operation = entry.get("operation", "")
        if not operation:
            found.append(Problem("FieldValueRequired", "Required value: must not be empty", f"{here}.operation"))
        elif operation not in ("Apply", "Update"):
            text = f'Unsupported value: "{operation}": supported values: "Apply", "Update"'
            found.append(Problem("FieldValueNotSupported", text, f"{here}.operation"))
        kind = entry.get("fieldsType", "")
        if kind and kind != "FieldsV1":
            text = f'Invalid value: "{kind}": must be `FieldsV1`'
            found.append(Problem("FieldValueInvalid", text, f"{here}.fieldsType"))
        found += manager_problems(entry.get("manager", ""), f"{here}.manager")
        if len(entry.get("subresource", "")) > 256:
            text = "Too long: may not be more than 256 bytes"
            found.append(Problem("FieldValueTooLong", text, f"{here}.subresource"))
    return found


def manager_problems(manager: str, path: str = "fieldManager") -> list[Problem]:
    found = []
    if len(manager.encode()) > 128:
        found.append(Problem("FieldValueTooLong", "Too long: may not be more than 128 bytes", path))
    for index, char in enumerate(manager if not manager.isprintable() else ""):
        if not char.isprintable():
            why = f"invalid character U+{ord(char):04X} (at position {len(manager[:index].encode())})"
            found.append(Problem("FieldValueInvalid", f"Invalid value: {canonical(manager)}: {why}", path))
    return found


def capped(entries: list[Json]) -> list[Json]:
    """At most ten updaters: the oldest of one version become one entry."""
    updaters = [entry for entry in entries if entry["operation"] == "Update"]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return entries
    updaters.sort(key=lambda entry: (entry.get("time") or "", identity(entry)))
    kept = {identity(entry): entry for entry in entries}
    first: dict[str, Json] = {}
    for entry in updaters:
        if excess <= 0:
            break
        version = entry["apiVersion"]
        if version not in first:
            first[version] = entry
            continue
        bucket = (ANCIENT, "Update", version, "")
        if bucket not in kept:
            kept[bucket] = make(*bucket[:3], "", kept.pop(identity(first[version]))["fieldsV1"], "")
        fields = fieldset.union(kept[bucket]["fieldsV1"], entry["fieldsV1"])
        kept.pop(identity(entry), None)
        kept[bucket] = make(*bucket[:3], entry.get("time", ""), fields, "")
        excess -= 1
    return list(kept.values())


def printed(entry: Mapping[str, Any]) -> str:
    """A manager as conflicts name it."""
    text = canonical(entry.get("manager", ""))
    if entry.get("subresource"):
        text += f" with subresource {canonical(entry['subresource'])}"
    return f"{text} using {entry.get('apiVersion', '')}" if entry.get("operation") == "Update" else text
