"""Query parameters as the options of the verbs, checked as Kubernetes checks them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from homeport.apiserver.option import DeleteOptions, ListOptions, WatchOptions, write_faults
from homeport.client.errors import BadRequest, Cause, Invalid, invalid
from homeport.machinery.selector import FieldSelector, SelectorError, parse_fields

MAX_PARAMETERS = 200
_INT64_DIGITS = 19
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_PROPAGATIONS = ("Foreground", "Background", "Orphan")


class Query(Mapping[str, str]):
    """First value of each parameter; `all` gives every one."""

    __slots__ = ("_values",)

    def __init__(self, raw: str = "") -> None:
        self._values: dict[str, list[str]] = {}
        if raw:
            self._parse(raw)

    def _parse(self, raw: str) -> None:
        try:
            pairs = parse_qsl(raw, keep_blank_values=True, errors="replace", max_num_fields=MAX_PARAMETERS)
        except ValueError as error:
            raise BadRequest(f"the query has more than {MAX_PARAMETERS} parameters") from error
        for key, value in pairs:
            if not value.isascii():
                value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            self._values.setdefault(key, []).append(value)

    def __getitem__(self, key: str) -> str:
        return self._values[key][0]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def get(self, key: str, default: object = "") -> Any:
        found = self._values.get(key)
        return found[0] if found else default

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def all(self, key: str) -> list[str]:
        return self._values.get(key, [])

    def flag(self, key: str) -> bool:
        """Present means true, unless it says false."""
        found = self._values.get(key)
        return found is not None and found[0].lower() not in ("false", "0")

    def number(self, key: str) -> int | None:
        """None when it is not there. One without a value is refused, as it is not known what it asks for."""
        found = self._values.get(key)
        return _int64(found[0]) if found else None


EMPTY = Query()


def _int64(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdigit():
        raise BadRequest(f"strconv.ParseInt: parsing {_quoted(text)}: invalid syntax")
    if len(digits) > _INT64_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f"strconv.ParseInt: parsing {_quoted(text)}: value out of range")
    return int(text)


def _quoted(text: str) -> str:
    return '"' + text[:128].replace("\\", "\\\\").replace('"', '\\"') + '"'


def check_timeout(query: Query) -> None:
    """`timeout` limits a request, which ours are anyway. One that makes no sense is refused."""
    text = query.get("timeout")
    if text and not _DURATION.fullmatch(text):
        raise BadRequest(f"invalid timeout specified in the request URL - time: invalid duration {_quoted(text)}")


def list_options(query: Query, name: str = "") -> ListOptions:
    if "sendInitialEvents" in query:
        raise _invalid(
            "ListOptions", "sendInitialEvents", "Forbidden", "Forbidden: sendInitialEvents is forbidden for list"
        )
    limit = max(query.number("limit") or 0, 0)
    return ListOptions(
        labels=query.get("labelSelector"),
        fields=_fields(query, name),
        limit=limit,
        continue_=query.get("continue"),
        resource_version=query.get("resourceVersion"),
        match=query.get("resourceVersionMatch"),
    )


def watch_options(query: Query, name: str = "") -> WatchOptions:
    return WatchOptions(
        labels=query.get("labelSelector"),
        fields=_fields(query, name),
        resource_version=query.get("resourceVersion"),
        match=query.get("resourceVersionMatch"),
        initial_events=query.flag("sendInitialEvents") if "sendInitialEvents" in query else None,
        bookmarks=query.flag("allowWatchBookmarks"),
        continue_=query.get("continue"),
    )


def _fields(query: Query, name: str) -> str:
    """A path that names one object restricts a list or watch to it."""
    fields: str = query.get("fieldSelector")
    if not name:
        return fields
    named = str(FieldSelector((("metadata.name", True, name),)))  # a name may hold what means something there
    if not fields:
        return named
    try:
        selected = parse_fields(fields).require("metadata.name")
    except SelectorError as error:
        raise BadRequest(str(error)) from error
    if selected != name:
        raise BadRequest("fieldSelector metadata.name doesn't match requested name")
    return f"{fields},{named}"


class WriteOptions(NamedTuple):
    field_manager: str = ""
    dry_run: bool = False
    field_validation: str = "Warn"
    force: bool | None = None


DEFAULT_WRITE = WriteOptions()


def write_options(query: Query, kind: str) -> WriteOptions:
    """`kind` (CreateOptions, UpdateOptions, PatchOptions) is what an error names."""
    if not query:
        return DEFAULT_WRITE
    causes: list[Cause] = []
    dry_run = _dry_run(query.all("dryRun"), causes)
    manager, validation = query.get("fieldManager"), query.get("fieldValidation")
    causes += write_faults(manager, validation)
    if causes:
        raise invalid("meta.k8s.io", kind, "", causes)
    return WriteOptions(manager, dry_run, validation or "Warn", query.flag("force") if "force" in query else None)


def check_patch(options: WriteOptions, *, apply: bool) -> None:
    """What an apply needs and another patch may not have."""
    if apply and not options.field_manager:
        raise _invalid("PatchOptions", "fieldManager", "Required", "Required value: is required for apply patch")
    if not apply and options.force is not None:
        raise _invalid("PatchOptions", "force", "Forbidden", "Forbidden: may not be specified for non-apply patch")


def _dry_run(values: list[str], causes: list[Cause]) -> bool:
    """An empty value asks for something, too: what it asks for is not known, so nothing is written."""
    if any(value != "All" for value in values):
        shown = ",".join(_quoted(value) for value in values)
        causes.append(_unsupported("dryRun", f"[{shown}]", ("All",)))
    return bool(values)


def _unsupported(field: str, shown: str, supported: tuple[str, ...]) -> Cause:
    values = ", ".join(f'"{value}"' for value in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown}: supported values: {values}", field)


def _invalid(kind: str, field: str, reason: str, message: str) -> Invalid:
    return invalid("meta.k8s.io", kind, "", [Cause(f"FieldValue{reason}", message, field)])


def delete_options(query: Query, body: Mapping[str, Any] | None) -> tuple[DeleteOptions, bool]:
    """From the body when there is one, from the query when there is none; with whether it is a dry run."""
    raw = _query_delete(query) if body is None else _body_delete(body)
    causes: list[Cause] = []
    dry_run = _dry_run(raw["dryRun"], causes)
    policy = raw["propagationPolicy"]
    if policy is not None and policy not in _PROPAGATIONS:
        causes.append(_unsupported("propagationPolicy", _quoted(policy), (*_PROPAGATIONS, "nil")))
    if policy and raw["orphanDependents"] is not None:
        causes.append(
            Cause.invalid(
                "propagationPolicy", f'"{policy}": orphanDependents and deletionPropagation cannot be both set'
            )
        )
    if causes:
        raise invalid("meta.k8s.io", "DeleteOptions", "", causes)
    options = DeleteOptions(
        uid=raw["uid"],
        resource_version=raw["resourceVersion"],
        propagation=policy or "",
        grace_seconds=raw["gracePeriodSeconds"],
        orphan_dependents=raw["orphanDependents"],
    )
    return options, dry_run


def _query_delete(query: Query) -> dict[str, Any]:
    return {
        "dryRun": query.all("dryRun"),
        "propagationPolicy": query.get("propagationPolicy", None),
        "orphanDependents": query.flag("orphanDependents") if "orphanDependents" in query else None,
        "gracePeriodSeconds": query.number("gracePeriodSeconds"),
        "uid": "",
        "resourceVersion": "",
    }


def _body_delete(body: Mapping[str, Any]) -> dict[str, Any]:
    kind = body.get("kind")
    if kind not in (None, "", "DeleteOptions"):
        version = _quoted(str(body.get("apiVersion", "")))
        raise BadRequest(
            f"no kind {_quoted(str(kind))} is registered for version {version} in the scheme of DeleteOptions"
        )
    pre = _typed(body, "preconditions", dict) or {}
    dry_run = _typed(body, "dryRun", list) or []
    if not all(isinstance(value, str) for value in dry_run):
        raise _bad_field("dryRun", "array of strings")
    grace = _typed(body, "gracePeriodSeconds", int)
    return {
        "dryRun": dry_run,
        "propagationPolicy": _typed(body, "propagationPolicy", str),
        "orphanDependents": _typed(body, "orphanDependents", bool),
        "gracePeriodSeconds": grace,
        "uid": _typed(pre, "uid", str) or "",
        "resourceVersion": _typed(pre, "resourceVersion", str) or "",
    }


_SHAPES = {dict: "object", list: "array", int: "integer", str: "string", bool: "boolean"}


def _typed(body: Mapping[str, Any], field: str, shape: type) -> Any:
    value = body.get(field)
    if value is None:
        return None
    if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        raise _bad_field(field, _SHAPES[shape])
    return value


def _bad_field(field: str, shape: str) -> BadRequest:
    return BadRequest(f"DeleteOptions: {field} must be of type {shape}")
