from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from unit.apiserver.kinds.kind_server import Server, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running
