from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.store import Store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await Store.open(None)
    yield opened
    await opened.close()


@pytest.fixture
def rbac(store: Store) -> Rbac:
    made = Rbac()
    made.follow(store)
    return made
