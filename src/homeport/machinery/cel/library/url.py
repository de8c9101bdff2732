"""URLs, parsed as strictly as Go's net/url does it for a request."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.registry import Function, function, method
from homeport.machinery.reading import reads

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PORT: Final = re.compile(r"(?::[0-9]*)?\Z")
_USERINFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*\Z")
_HOST: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\x80-\U0010ffff]*\Z")
_VALID_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/%]*\Z")
_SAFE_IN_PATH: Final = "$&+,/:;=@-_.~"


class Url(NamedTuple):
    scheme: str
    host: str
    path: str
    query: str
    fragment: str
    opaque: str

    @property
    def cel_type(self) -> t.CelType:
        return t.URL

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1 : self.host.rfind("]")]
        return self.host.partition(":")[0] if ":" in self.host else self.host

    @property
    def port(self) -> str:
        rest = self.host[self.host.rfind("]") + 1 :] if self.host.startswith("[") else self.host
        return rest.rpartition(":")[2] if ":" in rest else ""

    @property
    def escaped_path(self) -> str:
        if _VALID_PATH.match(self.path):
            return self.path
        return quote_from_bytes(unquote_to_bytes(self.path), safe=_SAFE_IN_PATH)

    @property
    def queries(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pair in self.query.split("&"):
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            key, _, value = pair.partition("=")
            found.setdefault(_unplus(key), []).append(_unplus(value))
        return found


def _unplus(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def _invalid(text: str, why: str) -> EvaluationError:
    return EvaluationError(f'URL parse error during conversion from string: parse "{text}": {why}')


def parse(text: str) -> Url:
    """An absolute URL or an absolute path."""
    if not text:
        raise _invalid(text, "empty url")
    if _CONTROL.search(text):
        raise _invalid(text, "net/url: invalid control character in URL")
    if text == "*":
        return Url("", "", "*", "", "", "")
    rest, _, fragment = text.partition("#")
    if rest.startswith(":"):
        raise _invalid(text, "missing protocol scheme")
    match = _SCHEME.match(rest)
    scheme = match.group(1).lower() if match else ""
    rest = rest[match.end() :] if match else rest
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if not scheme:
            raise _invalid(text, "invalid URI for request")
        return Url(scheme, "", "", query, fragment, rest)
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(text, authority), slash + path
    if _BAD_ESCAPE.search(rest) or _BAD_ESCAPE.search(fragment):
        raise _invalid(text, "invalid URL escape")
    return Url(scheme, host, rest, query, fragment, "")


def _host(text: str, authority: str) -> str:
    user, position, host = authority.rpartition("@")
    if position and (not _USERINFO.match(user) or _BAD_ESCAPE.search(user)):
        raise _invalid(text, "net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise _invalid(text, "missing ']' in host")
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if not _PORT.match(port):
        raise _invalid(text, f'invalid port "{port}" after host')
    if not _HOST.match(host):
        raise _invalid(text, "invalid character in host name")
    if _BAD_ESCAPE.search(host):
        raise _invalid(text, "invalid URL escape")
    return unquote_to_bytes(host).decode("utf-8", "replace") if "%" in host else host


def is_url(text: str) -> bool:
    return reads(parse, text, EvaluationError)


def problem(text: str) -> list[str]:
    """What is wrong with a URL, for the `uri` format."""
    try:
        parse(text)
    except EvaluationError as error:
        return [error.reason.partition(": ")[2]]
    return []


def functions() -> list[Function]:
    strings: Any = t.map_of(t.STRING, t.list_of(t.STRING))
    u, s = t.URL, t.STRING
    return [
        function("url", "string_to_url", (s,), u, parse),
        function("isURL", "is_url_string", (s,), t.BOOL, is_url),
        method("getScheme", "url_get_scheme", (u,), s, lambda a: a.scheme),
        method("getHost", "url_get_host", (u,), s, lambda a: a.host),
        method("getHostname", "url_get_hostname", (u,), s, lambda a: a.hostname),
        method("getPort", "url_get_port", (u,), s, lambda a: a.port),
        method("getEscapedPath", "url_get_escaped_path", (u,), s, lambda a: a.escaped_path),
        method("getQuery", "url_get_query", (u,), strings, lambda a: a.queries),
    ]
