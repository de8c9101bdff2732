"""Which requests are refused before anything else is looked at: other hosts, other origins, other sites. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

SAFE = frozenset({"GET", "HEAD"})


class Guard:
    """Knows the names under which the page is served. `names` are in addition to the address itself and loopback."""

    def __init__(self, scheme: str, host: str, port: int, names: frozenset[str] = frozenset()) -> None:
        self._scheme = scheme
        own = {host, *names}
        if is_loopback(host):
            own |= {"localhost", "127.0.0.1", "[::1]"}
        self._hosts = {f"{_bracketed(each)}:{port}" for each in own}
        self._hosts |= {_bracketed(each) for each in names}  # behind a Service or a forwarded port

    def refusal(self, method: str, headers: Mapping[str, str], *, socket: bool = False) -> str:
        """Why the request is refused, '' if it is not."""
        host = headers.get("Host", "")
        if host not in self._hosts:  # DNS rebinding: the name resolves to us, but it is not ours
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
        if headers.get("Host", "") not in self._hosts:
            return f"this server is not called {headers.get('Host', '')!r}"
        if "Origin" in headers or "Sec-Fetch-Site" in headers:
            return "only `homeport dashboard` logs in, never a page"
        return ""

    def _is_own(self, origin: str, host: str) -> bool:
        parts = urlsplit(origin)
        return parts.scheme == self._scheme and parts.netloc == host


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
