"""Secrets never get into logs: fields by their names, Secrets by their kind, and what looks like one in any text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

REDACTED = "[redacted]"
_DEPTH = 8

_SENSITIVE = re.compile(
    r"token|passw(or)?d|passphrase|secret|authorization|credential|cookie|private_?key|api_?key|client_?key|kubeconfig",
    re.IGNORECASE,
)
# What only says where a secret is, or something about it.
_HARMLESS = re.compile(r"(name|namespace|ref|uid|path|file|count|seconds|version|type|kind|expir\w*)$", re.IGNORECASE)
_SEALED_KINDS = frozenset({"Secret", "SecretList"})
_SEALED_FIELDS = ("data", "stringData")

# Anything that matches _TEXT holds one of these; looking for them first spares most texts the expression.
_HINTS = ("earer ", "asic ", "eyJ", "PRIVATE KEY", "@", "assword", "oken", "ecret", "ASSWORD", "OKEN", "ECRET")
_TEXT = re.compile(
    r"(?P<scheme>\b(?:bearer|basic)\s)[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)(?P<user>[^/\s:@]*):[^/\s@]+(?=@)"
    r"|(?P<field>(?:password|token|secret)[\"']?\s?[=:]\s?[\"']?)(?P<value>[^\s\"',;&}]+)",
    re.DOTALL | re.IGNORECASE,
)

_names: dict[str, bool] = {}


def is_sensitive(name: str) -> bool:
    """Whether a field of this name may hold a secret."""
    known = _names.get(name)
    if known is None:
        known = bool(_SENSITIVE.search(name)) and not _HARMLESS.search(name)
        if len(_names) < 10_000:
            _names[name] = known
    return known


def scrub(text: str) -> str:
    """The text less whatever in it looks like a secret."""
    for hint in _HINTS:
        if hint in text:
            return _TEXT.sub(_replacement, text)
    return text


def _replacement(match: re.Match[str]) -> str:
    if match["scheme"]:
        return f"{match['scheme']}{REDACTED}"
    if match["user"] is not None:
        return f"{match['user']}:{REDACTED}"
    if match["field"]:
        return f"{match['field']}{REDACTED}"
    return REDACTED


def redacted(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a log line, fit to be shown: plain values alone, nothing secret among them."""
    result = {}
    for name, value in fields.items():
        kind = type(value)
        if kind is int or kind is float or kind is bool or value is None:
            result[name] = value
        elif is_sensitive(name) and value not in ("", {}, []):
            result[name] = REDACTED
        elif kind is str:
            result[name] = scrub(value)
        else:
            result[name] = _plain(value, _DEPTH)
    return result


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if depth == 0:
        return "..."
    if isinstance(value, Mapping):
        return _plain_mapping(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in value]
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value, depth)
    if isinstance(value, BaseException):
        return scrub(f"{type(value).__name__}: {value}")
    return scrub(str(value))


def _plain_struct(value: msgspec.Struct, depth: int) -> Any:
    raw = msgspec.to_builtins(value)
    resource = getattr(type(value), "__resource__", None)
    if isinstance(raw, dict) and resource is not None:
        raw["kind"] = resource.kind  # decoded objects leave it out
    return _plain(raw, depth)


def _plain_mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    sealed = value.get("kind") in _SEALED_KINDS
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = str(key)
        if sealed and name in _SEALED_FIELDS and isinstance(item, Mapping):
            result[name] = dict.fromkeys(map(str, item), REDACTED)
        elif is_sensitive(name) and isinstance(item, str | bytes | Mapping) and item:
            result[name] = REDACTED
        elif sealed and name == "items" and isinstance(item, list):
            result[name] = f"<{len(item)} Secrets>"  # items of a list have no kind of their own
        else:
            result[name] = _plain(item, depth - 1)
    return result
