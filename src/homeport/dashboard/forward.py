"""Requests of the page to the API server, sent with the credential of the user: their rights decide."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_ROOTS = ("/api/", "/apis/", "/openapi/", "/homeport/")
_WHOLE = frozenset({"/api", "/apis", "/version", "/readyz", "/livez"})
_ENDLESS = ("watch", "follow")  # streams go through subscriptions
_CONNECTIONS = frozenset({"proxy", "portforward", "exec", "attach"})
_TYPES = frozenset(
    {
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    }
)


class ForwardError(ValueError):
    """The request can't be forwarded."""


class Forwarded(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One request, as the page sends it."""

    method: str
    path: str
    body: str = ""
    content_type: str = "application/json"
    accept: str = "application/json"

    def check(self) -> None:
        """Raises ForwardError."""
        if self.method not in METHODS:
            raise ForwardError(f"method {self.method!r} is not forwarded")
        if self.content_type not in _TYPES:
            raise ForwardError(f"content type {self.content_type!r} is not forwarded")
        if "\r" in self.accept or "\n" in self.accept or not self.accept.startswith("application/"):
            raise ForwardError("invalid accept")
        parts = urlsplit(self.path)
        plain = self.path.isascii() and self.path.isprintable() and not set(self.path) & set(" \\#")
        if parts.scheme or parts.netloc or not plain:
            raise ForwardError(f"invalid path {self.path[:100]!r}")
        segments = unquote(parts.path).split("/")
        if ".." in segments or "." in segments or "" in segments[1:-1] or "%2f" in parts.path.lower():
            raise ForwardError(f"invalid path {self.path[:100]!r}")
        if parts.path not in _WHOLE and not parts.path.startswith(_ROOTS):
            raise ForwardError(f"path {parts.path[:100]!r} is not forwarded")
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name in _ENDLESS and value.lower() not in ("false", "0"):
                raise ForwardError(f"{name} is for subscriptions alone")
        rest = segments[4:] if segments[1] == "apis" else segments[3:]  # after the group and version
        if rest[:1] == ["watch"]:
            raise ForwardError("watch is for subscriptions alone")
        rest = rest[2:] if rest[:1] == ["namespaces"] else rest
        if _CONNECTIONS & {*rest[:1], *rest[2:]}:  # and objects may be called so
            raise ForwardError("connections into Pods are not forwarded")
