"""Which requests are refused before anything else is looked at: other hosts, other origins, other sites. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
SAFE = frozenset({"GET", "HEAD"})


class Guard:
    """Knows the names under which the page is served. `names` (`NAME` or `NAME:PORT`) are in addition to the address
    itself and loopback.

    With `forwarded` any port of loopback is a name, too, also without TLS: `homeport dashboard` forwards such a port
    and ends TLS there. No page of another origin can send requests with such a Host and an Origin that is equal to it.
    """

    def __init__(
        self, scheme: str, host: str, port: int, names: frozenset[str] = frozenset(), *, forwarded: bool = False
    ) -> None:
        self._scheme = scheme
        self._forwarded = forwarded
        own = {*names} if host == "*" else {host, *names}
        if is_loopback(host):
            own |= _LOOPBACK
        self._hosts = {f"{_bracketed(each)}:{port}" for each in own}
        # Behind a Service; `NAME:PORT` as it is.
        self._hosts |= {each if each.count(":") == 1 else _bracketed(each) for each in names}

    def refusal(self, method: str, headers: Mapping[str, str], *, socket: bool = False) -> str:
        """Why the request is refused, '' if it is not."""
        host = headers.get("Host", "")
        if not self._is_ours(host):  # DNS rebinding: the name resolves to us, but it is not ours
            return f"this server is not called {host!r}"
        origin = headers.get("Origin")
        if origin is None:
            if socket or method not in SAFE:
                return "the request has no Origin"
        elif not self._is_own(origin, host):
            return f"requests from {origin!r} are not accepted"
        site = headers.get("Sec-Fetch-Site", "same-origin")
        if site not in ("same-origin", "none") or (site == "none" and method not in SAFE):
            return "requests from other sites are not accepted"
        return ""

    def refusal_of_login(self, headers: Mapping[str, str]) -> str:
        """For what `homeport dashboard` sends: no browser may."""
        if not self._is_ours(headers.get("Host", "")):
            return f"this server is not called {headers.get('Host', '')!r}"
        if "Origin" in headers or "Sec-Fetch-Site" in headers:
            return "only `homeport dashboard` logs in, never a page"
        return ""

    def _is_own(self, origin: str, host: str) -> bool:
        parts = urlsplit(origin)
        schemes = {self._scheme, "http"} if self._is_forwarded(host) else {self._scheme}
        return parts.scheme in schemes and parts.netloc == host

    def _is_ours(self, host: str) -> bool:
        return host in self._hosts or self._is_forwarded(host)

    def _is_forwarded(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        return self._forwarded and name in _LOOPBACK and port.isdecimal()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
