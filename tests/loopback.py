"""A guard: a test in which a socket leaves loopback fails, and so does the connection.

Import `stay_on_loopback` into a conftest.py to hold all tests below it to that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest

_LOCAL_NAMES = frozenset({"", "localhost", "ip6-localhost", "0.0.0.0", "::"})


class LeftLoopback(AssertionError):
    """Not an OSError: code that copes with a lost connection must not swallow it."""


class _Guard:
    """An audit hook sees every socket of the interpreter and can't be removed, only told to look away."""

    def __init__(self) -> None:
        self.watching = False
        self.left: list[str] = []
        sys.addaudithook(self._see)

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            address = args[1]
            target = address[0] if isinstance(address, tuple) else ""  # others are paths: sockets of this machine
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
            target = args[0]
        else:
            return
        if not stays(target):
            self.left.append(f"{event} {target}")
            raise LeftLoopback(f"a test may not leave loopback: {event} {target}")


def stays(target: Any) -> bool:
    text = target.decode() if isinstance(target, bytes) else str(target or "")
    if text.lower() in _LOCAL_NAMES:
        return True
    try:
        return ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


_GUARD: list[_Guard] = []


@pytest.fixture(autouse=True)
def stay_on_loopback() -> Iterator[list[str]]:
    """Gives the list of what left; a test of the guard itself may empty it."""
    if not _GUARD:
        _GUARD.append(_Guard())
    guard = _GUARD[0]
    guard.left.clear()
    guard.watching = True
    try:
        yield guard.left
    finally:
        guard.watching = False
    if guard.left:
        pytest.fail("left loopback: " + "; ".join(guard.left))
