"""Taking a request's path apart, as Kubernetes does before it authorises anything."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from homeport.client.errors import BadRequest

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_PARTS = frozenset(("status", "finalize"))
MAX_SEGMENTS = 64


class RequestInfo(NamedTuple):
    """Who is addressed, and what is to be done. `resource` is '' for paths outside the API groups.

    Rights are checked on these fields, so the verbs may carry out nothing but what they say. A path that is not `plain`
    says it in a way that no route has, and is never served.
    """

    path: str
    verb: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    extra: tuple[str, ...] = ()  # what follows the subresource, e.g. the path of a proxy
    plain: bool = True  # no segment is empty, and a namespace is not inside another


def split_target(target: str) -> tuple[str, str]:
    """The decoded path and the raw query string. Bytes that are no UTF-8 become U+FFFD: they can match no name."""
    path, _, query = target.partition("?")
    if path[:1] != "/":
        path, query = _absolute(target)
    if "%" in path:
        path = unquote(path)
    if not path.isascii():
        path = printable(path)
    return path, query


def _absolute(target: str) -> tuple[str, str]:
    """A proxy may send `GET https://host/path`; `OPTIONS *` has no path at all."""
    _, scheme, rest = target.partition("://")
    _, slash, path = rest.partition("/") if scheme else ("", "", "")
    path, _, query = path.partition("?")
    return (slash or "/") + path, query


def printable(text: str) -> str:
    """Header and path bytes that are no UTF-8 arrive as lone surrogates, which JSON can't carry."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse_request(method: str, path: str) -> RequestInfo:
    """Whether a list is a watch is decided later, where the query is known."""
    parts = path.strip("/").split("/", MAX_SEGMENTS)
    start = {"api": 1, "apis": 2}.get(parts[0], MAX_SEGMENTS)
    if len(parts) < start + 2 or path[:2] == "//":
        return RequestInfo(path, method.lower())
    group = parts[1] if start == 2 else ""
    info = _resource(method, path, group, parts[start], parts[start + 1 :])
    return info if "" not in parts else info._replace(plain=False)


def _resource(method: str, path: str, group: str, version: str, parts: list[str]) -> RequestInfo:
    verb = _VERBS.get(method, "")
    if parts[0] == "watch":
        if len(parts) < 2:
            raise BadRequest(f"unable to determine kind and namespace from url, {path}")
        # The deprecated form watches whatever the method is; only GET is served.
        verb, parts = "watch", parts[1:]
    namespace, plain = "", True
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
            parts = parts[2:]
            # `namespaces/a/namespaces/b` would ask for a's rights and mean b.
            plain = parts[0] != "namespaces"
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    if not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return RequestInfo(path, verb, group, version, namespace, parts[0], name, subresource, tuple(parts[3:]), plain)
