"""A scripted server and a client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from homeport.client.config import Config
from homeport.client.http import HttpClient
from homeport.client.wire.retry import Retry
from unit.client.scripted_peer import Peer, serving


@pytest_asyncio.fixture
async def peer() -> AsyncIterator[Peer]:
    async with serving() as made:
        yield made


@pytest.fixture
def quick() -> Retry:
    """Five attempts without the waits."""
    return Retry(attempts=5, first_seconds=0.001, cap_seconds=0.002)


@pytest_asyncio.fixture
async def client(peer: Peer, quick: Retry) -> AsyncIterator[HttpClient]:
    async with HttpClient(Config(peer.url), retry=quick) as made:
        yield made
