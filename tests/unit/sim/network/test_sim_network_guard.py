from __future__ import annotations

import asyncio
import socket

import pytest

from loopback import LeftLoopback, stays


@pytest.mark.parametrize(
    ("target", "inside"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("localhost", True),
        (b"localhost", True),
        (None, True),
        ("10.0.0.1", False),
        ("example.com", False),
        ("fe80::1%eth0", False),
    ],
)
def test_only_loopback_counts_as_staying(target: object, inside: bool) -> None:
    assert stays(target) is inside


def test_a_connection_that_leaves_loopback_fails_and_is_remembered(stay_on_loopback: list[str]) -> None:
    with socket.socket() as sock, pytest.raises(LeftLoopback):
        sock.connect(("192.0.2.1", 9))
    with pytest.raises(LeftLoopback):
        socket.getaddrinfo("example.com", 443)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, pytest.raises(LeftLoopback):
        sock.sendto(b"x", ("192.0.2.1", 9))
    assert stay_on_loopback == ["socket.connect 192.0.2.1", "socket.getaddrinfo example.com", "socket.sendto 192.0.2.1"]
    stay_on_loopback.clear()


async def test_the_event_loop_is_held_to_it_too(stay_on_loopback: list[str]) -> None:
    with pytest.raises(LeftLoopback):
        await asyncio.open_connection("192.0.2.1", 9)
    assert stay_on_loopback
    stay_on_loopback.clear()
