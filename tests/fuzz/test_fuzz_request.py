"""Wild requests over real TLS connections: the server answers each in time, never with an internal error, and does not grow."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.fuzz_bound import Deadline, Enough, Target
from fuzz.fuzz_input import Shot, shots

ALLOWED = frozenset((501, 503, 504))
PATIENCE = 15.0
FEWEST = 50  # however slow the machine is
GROWTH = 96 * 1024 * 1024

_LOOP = settings(
    max_examples=1_000_000,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def exchange(target: Target, data: bytes, *, hang_up: bool = False) -> bytes:
    """Sends bytes on a fresh connection and reads until the server closes it, or leaves right away."""
    raw = socket.create_connection((target.host, target.port), timeout=PATIENCE)
    with raw, target.tls.wrap_socket(raw) as tls:
        try:
            tls.sendall(data)
            return b"" if hang_up else _drain(tls)
        except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""  # the server had enough of it, as it may


def disturb(target: Target, data: bytes) -> None:
    """Sends bytes that may be no whole request, and does not wait for an answer to what was never asked."""
    raw = socket.create_connection((target.host, target.port), timeout=PATIENCE)
    with raw, target.tls.wrap_socket(raw) as tls:
        tls.settimeout(0.05)
        with contextlib.suppress(OSError):
            tls.sendall(data)
            check(tls.recv(65536), data, target)


def _drain(tls: ssl.SSLSocket) -> bytes:
    got = b""
    while chunk := tls.recv(65536):
        got += chunk
    return got


def check(answer: bytes, shot: object, target: Target) -> None:
    if not answer:
        return
    assert answer.startswith(b"HTTP/"), shot
    code = int(answer.split(b" ", 2)[1])
    assert code < 500 or code in ALLOWED, f"{code} for {shot}: {answer[-600:]!r}\n{target.trouble}"


def test_no_request_is_too_wild(target: Target, deadline: Deadline) -> None:
    fired = 0

    @_LOOP
    @given(shots())
    def fire(shot: Shot) -> None:
        nonlocal fired
        if deadline.over and fired >= FEWEST:
            raise Enough
        fired += 1
        begun = time.monotonic()
        check(exchange(target, shot.encoded(target.token)), shot, target)
        assert time.monotonic() - begun < PATIENCE, shot

    with pytest.raises(Enough):
        fire()
    assert target.alive, target.trouble


def test_broken_http_and_broken_tls_hurt_nobody_else(target: Target, deadline: Deadline) -> None:
    @_LOOP
    @given(shots(), st.integers(0, 400), st.binary(max_size=30), st.sampled_from(["cut", "noise", "plain", "leave"]))
    def fire(shot: Shot, cut: int, noise: bytes, how: str) -> None:
        if deadline.over:
            raise Enough
        data = shot.encoded(target.token)
        if how == "plain":
            _plain(target, data[:cut] + noise)
        elif how == "leave":
            exchange(target, data[:cut], hang_up=True)
        else:
            disturb(target, data[:cut] + noise + (b"" if how == "cut" else data[cut:]) + b"\r\n\r\n")

    with pytest.raises(Enough):
        fire()
    assert target.alive, target.trouble
    check(exchange(target, Shot("GET", "/readyz").encoded(target.token)), "after broken connections", target)


def _plain(target: Target, data: bytes) -> None:
    """Bytes that are no TLS, or a handshake that stops halfway."""
    with socket.create_connection((target.host, target.port), timeout=PATIENCE) as raw:
        raw.sendall(data or b"\x16\x03\x01\x02\x00\x01")


def test_memory_stops_growing(target: Target, deadline: Deadline) -> None:
    """The same mix of requests over and over: after the first rounds nothing is added."""
    rng = random.Random(1)  # the same requests every time
    mix = [_repeatable(rng) for _ in range(200)]
    for shot in mix:
        check(exchange(target, shot.encoded(target.token)), shot, target)
    before = target.memory
    rounds = 0
    while not deadline.over:
        for shot in mix:
            check(exchange(target, shot.encoded(target.token)), shot, target)
        rounds += 1
    assert rounds
    assert target.memory - before < GROWTH


def _repeatable(rng: random.Random) -> Shot:
    path = rng.choice(("/api/v1/namespaces/default/configmaps", "/apis/example.com/v1/namespaces/default/widgets"))
    method = rng.choice(("GET", "POST", "DELETE", "PATCH"))
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"k":"%s"}}' % (
        b"x" * rng.randint(1, 9999)
    )
    target = {"GET": path, "POST": f"{path}?dryRun=All"}.get(method, f"{path}/m")
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return Shot(method, target, [("Content-Type", kind)], b"" if method in ("GET", "DELETE") else body)
