"""What a cluster serves, asked through a client in process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.apiserver.local import LocalClient
from homeport.client.errors import NotFound
from homeport.client.restmapper import RestMapper
from homeport.runtime.testing import Plane, plane


@pytest.fixture
async def mapper() -> AsyncIterator[RestMapper]:
    made: Plane
    async with plane() as made:
        yield RestMapper(made.client)


async def test_kind_of_a_manifest_is_found(mapper: RestMapper) -> None:
    assert await mapper.find("apps/v1", "Deployment") == Resource("apps", "v1", "Deployment", "deployments")
    assert await mapper.find("v1", "Node") == Resource("", "v1", "Node", "nodes", namespaced=False)


async def test_an_old_version_is_answered_with_the_served_one(mapper: RestMapper) -> None:
    with pytest.raises(NotFound, match="serves no Deployment of apps/v1beta1, but it serves apps/v1"):
        await mapper.find("apps/v1beta1", "Deployment")


async def test_everything_served_is_listed_with_the_version(mapper: RestMapper) -> None:
    served = await mapper.served()
    assert served.version.startswith("v1.")
    assert {"v1", "v1/Pod", "apps/v1", "apps/v1/Deployment"} <= served.api_versions
    assert "apps/v1/Deployment/status" not in served.api_versions


async def test_an_old_server_is_asked_group_by_group() -> None:
    """One that knows the plain lists alone tells the same."""
    async with plane() as made:
        assert isinstance(made.client, LocalClient)
        local = made.client

        class Old:
            def __init__(self) -> None:
                self.asked = 0

            async def raw(self, method: str, path: str, *, accept: str = "") -> Any:
                self.asked += 1
                return await local.raw(method, path)

        old: Any = Old()
        assert await RestMapper(old).served() == await RestMapper(made.client).served()
        assert old.asked > 10
