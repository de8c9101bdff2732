"""One suite, three servers. HOMEPORT_CONFORMANCE=local,http,real picks some of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from conformance.runtime.world import World, fresh_namespace, open_world
from realkube import find_binaries

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.conformance)
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            spec = getattr(item, "callspec", None)
            if spec is not None and "world" in spec.params:
                item.add_marker(pytest.mark.xdist_group(f"runtime-{spec.params['world']}"))


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    # A workload cluster is a server of the client suite alone.
    params=[
        each for each in os.environ.get("HOMEPORT_CONFORMANCE", "local,http,real").split(",") if each != "workload"
    ],
)
async def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    if request.param == "real":
        found = find_binaries()
        if isinstance(found, str):
            pytest.skip(found)
    async with open_world(request.param, tmp_path_factory.mktemp(f"runtime-{request.param}")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def ns(world: World) -> str:
    return await fresh_namespace(world)
