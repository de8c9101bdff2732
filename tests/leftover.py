"""Connections that a test leaves open when its event loop ends are found at the end of that test.

Without this, Python notices when it collects garbage, and the warning fails whichever test runs then.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from asyncio import selector_events
from typing import Any

from aiohttp import connector

_TRANSPORT: Any = vars(selector_events)["_SelectorTransport"]
_open: weakref.WeakSet[Any] = weakref.WeakSet()
_borrowed: weakref.WeakSet[Any] = weakref.WeakSet()


def watch_transports() -> None:
    """Remembers every transport that is made from now on, and every use of one by aiohttp's clients."""
    _watch(_TRANSPORT, _open)
    _watch(connector.Connection, _borrowed)

    connector.Connection.__repr__ = _with_origin  # type: ignore[method-assign]


def _with_origin(self: Any) -> str:
    """Of a connection that is warned about later: in which test it was made."""
    return f"Connection<{self._key}> of {getattr(self, 'origin', 'a test before')}"


def _watch(kind: Any, made: weakref.WeakSet[Any]) -> None:
    if hasattr(kind, "begin"):
        return
    begin = kind.begin = kind.__init__

    def remember(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self.origin = os.environ.get("PYTEST_CURRENT_TEST", "")
        made.add(self)

    kind.__init__ = remember


def take_leftovers() -> list[str]:
    """Closes the connections of loops that have ended, and describes those that nobody had begun to close."""
    found = []
    for use in list(_borrowed):
        if use._loop.is_closed():
            use._protocol = None  # its transport is what counts, and is looked at below
            _borrowed.discard(use)
    for transport in list(_open):
        if transport._sock is None:
            _open.discard(transport)
        elif transport._loop.is_closed():
            if not _closing(transport):
                found.append(_description(transport))
            _close(transport)
            _open.discard(transport)
    return found


def _closing(transport: Any) -> bool:
    """Of TLS the goodbyes may still be under way when a loop ends: the peer need not answer them."""
    outer = _outer(transport)
    return bool(transport.is_closing() or (outer is not None and outer.is_closing()))


def _close(transport: Any) -> None:
    """As far as that is possible without its loop, so that no other test is blamed for it, too."""
    transport._sock.close()
    transport._sock = None
    transport._closing = True
    outer = _outer(transport)
    if outer is not None:
        outer._closed = True


def _outer(transport: Any) -> Any:
    """The transport that the user of a TLS connection sees."""
    return getattr(transport.get_protocol(), "_app_transport", None)


def _description(transport: Any) -> str:
    protocol: asyncio.BaseProtocol = transport.get_protocol()
    inner = getattr(protocol, "_app_protocol", None) or protocol
    addresses = f"{transport.get_extra_info('sockname')} > {transport.get_extra_info('peername')}"
    return f"{type(transport).__name__} {addresses} of {type(inner).__module__}.{type(inner).__name__}"
