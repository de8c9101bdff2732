"""The cloud controller manager of a cluster at rest: its Deployment is not watched, and comes back when it is deleted."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from homeport.ccm.manifest import DEPLOYMENT, NAME, NAMESPACE
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from scenario.ccm.cloud import workload
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

pytestmark = pytest.mark.usefixtures("idle_connections_age")
OURS = Key(NAMESPACE, NAME)


async def asked(site: Site, seconds: float) -> Counter[str]:
    http = workload(site).server.http
    assert http is not None
    before = Counter(http.metrics.requests())
    await asyncio.sleep(seconds)
    return Counter(http.metrics.requests()) - before


async def put_back(site: Site) -> float:
    """The seconds until a Deployment that is deleted exists again."""
    client = workload(site).client()
    uid = (await client.get(DEPLOYMENT, OURS)).uid
    await client.delete(DEPLOYMENT, OURS)
    began = site.clock.monotonic()
    async with asyncio.timeout(600):
        while True:
            await asyncio.sleep(1)
            try:
                if (await client.get(DEPLOYMENT, OURS)).uid != uid:
                    return site.clock.monotonic() - began
            except NotFound:
                continue


@virtual
async def test_a_cloud_controller_manager_that_is_deleted_at_rest_is_back_within_ninety_seconds() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects("one", 1, 0, "10.0.0.100"))
        await site.running("one", 1)
        for _ in range(2):
            await asyncio.sleep(120)
            found = await asked(site, 300)
            assert "WATCH deployments" not in found
            assert 3 <= found["LIST deployments"] <= 4
            assert await put_back(site) <= 92
            await site.restart()
