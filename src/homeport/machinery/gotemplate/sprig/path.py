"""Paths of files, addresses, and spans of time."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from homeport.machinery.gotemplate import value as go
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.number import SECOND, span_text
from homeport.machinery.gotemplate.value import INT_MAX, INT_MIN, Int64, octets, type_of, wrapped

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_USER: Final = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_UNITS: Final = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_SPAN: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_ROUNDED: Final = (("y", 8760 * 3600), ("mo", 720 * 3600), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def clean(path: str) -> str:
    rooted = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and (kept and kept[-1] != ".."):
            kept.pop()
        elif part not in ("", ".") and not (part == ".." and rooted):
            kept.append(part)
    return ("/" if rooted else "") + "/".join(kept) or "."


def base(path: str) -> str:
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


def directory(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return clean(head + slash)


def extension(path: str) -> str:
    _, dot, end = path.rpartition("/")[2].rpartition(".")
    return dot + end if dot else ""


def parsed(text: str) -> dict[str, Any]:
    if any(c < " " or c == "\x7f" for c in text):
        raise CallError(f"{text!r} is not a valid URL: it has control characters")
    rest, _, fragment = text.partition("#")
    found = _SCHEME.match(rest)
    if rest.startswith(":"):
        raise CallError(f"{text!r} is not a valid URL: the scheme is missing")
    scheme = found[1].lower() if found else ""
    rest = rest[found.end() :] if found else rest
    rest, _, query = rest.partition("?")
    made = dict.fromkeys(("host", "hostname", "opaque", "userinfo", "path"), "")
    made |= {"scheme": scheme, "query": query, "fragment": _unescaped(fragment)}
    if scheme and not rest.startswith("/"):
        made["opaque"] = rest
        return made
    if not scheme and ":" in rest.partition("/")[0]:
        raise CallError(f"{text!r} is not a valid URL: the first part of a path has no ':'")
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, at, host = authority.rpartition("@")
        if not _USER.fullmatch(user):
            raise CallError(f"{text!r} is not a valid URL: {user!r} is not a valid user")
        made["userinfo"] = _user(user) if at else ""
        made["host"] = _host(host, text)
        made["hostname"] = _hostname(made["host"])
    made["path"] = _unescaped(rest)
    return made


def _user(text: str) -> str:
    name, colon, secret = text.partition(":")
    return quote(_unescaped(name), safe="$&+,;=~") + (
        colon + quote(_unescaped(secret), safe="$&+,;=~") if colon else ""
    )


def _host(host: str, text: str) -> str:
    tail = host.rpartition("]")[2] if host.startswith("[") else host
    _, colon, port = tail.rpartition(":")
    if colon and port and not port.isdigit():
        raise CallError(f"{text!r} is not a valid URL: {port!r} is not a valid port")
    if "[" in host[1:] or any(c in host for c in ' "<>\\^`{|}'):
        raise CallError(f"{text!r} is not a valid URL: {host!r} is not a valid host")
    return _unescaped(host)


def _hostname(host: str) -> str:
    if host.startswith("[") and "]" in host:
        return host[1 : host.index("]")]
    return host.partition(":")[0]


def _unescaped(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise CallError(f"{text!r} has an escape that can't be read")
    return go.text_of(unquote_to_bytes(octets(text)))


def joined(parts: dict[str, Any]) -> str:
    def part(name: str) -> str:
        found = parts.get(name, "")
        if not isinstance(found, str):
            raise CallError(f"{name} must be a string, not {type_of(found)}")
        return found

    scheme, host, path, opaque = part("scheme"), part("host"), part("path"), part("opaque")
    text = f"{scheme}:" if scheme else ""
    user = _user(part("userinfo"))
    if opaque:
        text += opaque
    else:
        if scheme or host or user:
            if host or path or user:
                text += "//" if not (not host and not user and path.startswith("//")) or scheme else ""
            text += (user + "@" if user else "") + quote(octets(host), safe="!$&'()*+,;=:[]<>\"~")
        if path and not path.startswith("/") and host:
            text += "/"
        text += path if path == "*" else quote(octets(path), safe="$&+,/:;=@~")
    if part("query"):
        text += "?" + part("query")
    if part("fragment"):
        text += "#" + quote(octets(part("fragment")), safe="$&+,/:;=?@!()*~")
    return text


def duration(value: object) -> str:
    """Seconds as 1h2m3s."""
    seconds = 0
    if isinstance(value, str):
        digits = value.removeprefix("+").removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < 400:
            seconds = max(INT_MIN, min(INT_MAX, int(value)))
    elif isinstance(value, Int64):
        seconds = int(value)
    span = wrapped(seconds * SECOND)
    return span_text(span)


def duration_round(value: object) -> str:
    """Only the largest unit: 2h for 2h10m5s."""
    span = (read_span(value) or 0) if isinstance(value, str) else int(value) if isinstance(value, Int64) else 0
    for unit, seconds in _ROUNDED:
        if abs(span) > seconds * SECOND:
            return f"{abs(span) // (seconds * SECOND)}{unit}"
    return "0s"


def read_span(text: str) -> int | None:
    """Nanoseconds of 1h2m3s; None if it can't be read."""
    body = text[1:] if text[:1] in ("+", "-") else text
    total, position = 0, 0
    if body == "0":
        return 0
    if not body or len(text) > 200:
        return None
    while position < len(body):
        found = _SPAN.match(body, position)
        if found is None or not (found[1] or found[2]):
            return None
        unit = _UNITS[found[3]]
        total += int(found[1] or 0) * unit + (int(found[2]) * unit // 10 ** len(found[2]) if found[2] else 0)
        position = found.end()
    if total > INT_MAX:
        return None
    return -total if text[:1] == "-" else total


FUNCTIONS: Final = functions(
    {
        "base": ("string", base),
        "dir": ("string", directory),
        "clean": ("string", clean),
        "ext": ("string", extension),
        "isAbs": ("string", lambda path: path.startswith("/")),
        "osBase": ("string", base),
        "osDir": ("string", directory),
        "osClean": ("string", clean),
        "osExt": ("string", extension),
        "osIsAbs": ("string", lambda path: path.startswith("/")),
        "urlParse": ("string", parsed),
        "urlJoin": ("map", joined),
        "duration": ("any", duration),
        "durationRound": ("any", duration_round),
    }
)
