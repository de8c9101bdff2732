from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from unit.apiserver.http.http_serving import Api, serving


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as running:
        yield running
