"""Fuzzing led by coverage: requests that reach lines of the server not seen before are kept and bred from."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

import homeport.apiserver
from fuzz.fuzz_bound import Deadline
from fuzz.fuzz_input import ACCEPTS, KEYS, METHODS, PARAMETERS, PLURALS, SCALARS, SEEDS, SEGMENTS, TYPES, VALUES, Shot
from fuzz.fuzz_target import TOKEN, open_server

SOURCE = str(Path(homeport.apiserver.__file__).parent)
ALLOWED = frozenset((501, 503, 504))


class Lines:
    """Which lines of the server have run. `fresh` says whether there were new ones since it was last asked."""

    def __init__(self) -> None:
        self.seen: set[tuple[CodeType, int]] = set()
        self._count = 0

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(SOURCE) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.seen.add((frame.f_code, frame.f_lineno))
        return self._line

    @property
    def fresh(self) -> bool:
        grown, self._count = len(self.seen) > self._count, len(self.seen)
        return grown


class Breeder:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.corpus = [self._seed(document) for document in SEEDS]

    def _seed(self, document: Any) -> Shot:
        rng = self._rng
        method = rng.choice(("POST", "PUT", "PATCH"))
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        path = rng.choice(PLURALS) + ("" if method == "POST" else "/a")
        return Shot(method, path, [("Content-Type", kind)], json.dumps(document).encode())

    def breed(self) -> Shot:
        shot = self._rng.choice(self.corpus)
        for _ in range(self._rng.randint(1, 3)):
            shot = self._rng.choice((self._method, self._target, self._query, self._header, self._body, self._bytes))(
                shot
            )
        return shot

    def _method(self, shot: Shot) -> Shot:
        return Shot(self._rng.choice(METHODS[:6]), shot.target, shot.headers, shot.body)

    def _target(self, shot: Shot) -> Shot:
        path, _, query = shot.target.partition("?")
        extra = self._rng.choice(("", "/a", "/a/status", "/a/scale", f"/{self._rng.choice(SEGMENTS)}"))
        base = self._rng.choice((*PLURALS, path))
        return Shot(shot.method, f"{base}{extra}?{query}", shot.headers, shot.body)

    def _query(self, shot: Shot) -> Shot:
        pair = f"{self._rng.choice(PARAMETERS)}={self._rng.choice(VALUES).replace(' ', '+')}"
        joint = "&" if "?" in shot.target else "?"
        return Shot(shot.method, f"{shot.target}{joint}{pair}", shot.headers, shot.body)

    def _header(self, shot: Shot) -> Shot:
        headers = [("Content-Type", self._rng.choice(TYPES)), ("Accept", self._rng.choice(ACCEPTS))]
        return Shot(shot.method, shot.target, headers, shot.body)

    def _body(self, shot: Shot) -> Shot:
        try:
            document = json.loads(shot.body)
        except ValueError:
            document = json.loads(json.dumps(self._rng.choice(SEEDS)))
        spots = list(_spots(document))
        if spots:
            holder, key = self._rng.choice(spots)
            holder[key] = self._rng.choice((self._rng.choice(SCALARS), self._rng.choice(SEEDS), [], {}, [{}]))
        if isinstance(document, dict):
            document[self._rng.choice(KEYS)] = self._rng.choice(SCALARS)
        return Shot(shot.method, shot.target, shot.headers, json.dumps(document).encode())

    def _bytes(self, shot: Shot) -> Shot:
        at = self._rng.randint(0, max(len(shot.body), 1))
        return Shot(
            shot.method, shot.target, shot.headers, shot.body[:at] + self._rng.randbytes(2) + shot.body[at + 1 :]
        )


def _spots(value: Any) -> Any:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(children):
        yield value, key
        yield from _spots(child)


async def _fire(session: aiohttp.ClientSession, url: str, shot: Shot) -> tuple[int, bytes]:
    # Bytes that no URL may hold are for the tests over raw connections: this client trips over the answers.
    path, _, query = quote(shot.target, safe="%/?&=,()!*+:~$'@;").partition("?")
    query = f"{query}&timeoutSeconds=1" if "watch" in shot.target else query
    headers = {"Authorization": f"Bearer {TOKEN}", **{name: value for name, value in shot.headers if value}}
    async with session.request(
        shot.method, URL(f"{url}{path}?{query}", encoded=True), data=shot.body, headers=headers, ssl=False
    ) as answer:
        return answer.status, await answer.read()


async def test_the_unexplored_is_explored_without_a_failure(tmp_path: Path, deadline: Deadline) -> None:
    server = await open_server(tmp_path / "pki")
    url = await server.serve()
    lines, breeder = Lines(), Breeder(seed=20)
    first = len(breeder.corpus)
    fired = 0
    async with aiohttp.ClientSession() as session:
        sys.settrace(lines.trace)
        try:
            while not deadline.over:
                shot = breeder.breed() if fired >= first else breeder.corpus[fired]
                fired += 1
                async with asyncio.timeout(20):
                    status, body = await _fire(session, url, shot)
                assert status < 500 or status in ALLOWED, (shot, body[-600:])
                if lines.fresh and fired > first:
                    breeder.corpus.append(shot)
        finally:
            sys.settrace(None)
    await server.close(drain_seconds=1)
    assert fired > first
    if fired > 300:
        assert len(breeder.corpus) > first  # it did learn something


@pytest.fixture(autouse=True)
def _no_tracer_before() -> None:
    if sys.gettrace() is not None:
        pytest.skip("a debugger or coverage tool already traces")
