from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from homeport.store import Store


@pytest.fixture(params=["memory", "disk"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store of each flavour: what holds for one must hold for the other."""
    opened = await Store.open(None if request.param == "memory" else tmp_path / "data" / "homeport.db")
    yield opened
    await opened.close()
