"""Many TenantControlPlanes at once, whose controllers die on the way. `make campaign` runs 200 of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from campaign import CAMPAIGN
from homeport.api.steward.v1alpha1 import TenantControlPlane
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import virtual
from present import present
from scenario.hosted.stage import SERVICE
from scenario.hosted.test_tenant import CONFIG_MAP, SECRET, Site, site, tenant

COUNT = 200 if CAMPAIGN else 10
NAMES = [f"tenant-{number:03d}" for number in range(COUNT)]
GONE, LEFT = NAMES[::2], NAMES[1::2]
HERE = Query(namespace="default")


async def tenants(s: Site) -> dict[str, TenantControlPlane]:
    return {each.metadata.name: each for each in (await s.client.list(TenantControlPlane, HERE)).items}


async def ready(s: Site, names: list[str]) -> bool:
    found = await tenants(s)
    return all(found[name].status.kubernetes_resources.version.status == "Ready" for name in names)


async def write(s: Site, name: str) -> None:
    inside = await s.tenant_client(name)
    body = {"metadata": {"name": f"of-{name}", "namespace": "default"}, "data": {"tenant": name}}
    await inside.create(body, kind=CONFIG_MAP)


async def written(s: Site, name: str) -> list[str]:
    inside = await s.tenant_client(name)
    return [each.name for each in (await inside.list(CONFIG_MAP, HERE)).items if each.name.startswith("of-")]


@pytest.mark.timeout(1800)
@virtual
async def test_many_control_planes_share_nothing_and_go_without_a_trace(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        for number, name in enumerate(NAMES):
            await s.create(tenant(name))
            if number % (COUNT // 4) == 0:  # the process dies in the middle of all this
                await asyncio.sleep(3.0)
                await s.stop()
                await s.start()
        await s.stage.plane.until(lambda: ready(s, NAMES), f"{COUNT} control planes are Ready", seconds=7200.0)

        found = await tenants(s)
        assert len({each.status.control_plane_endpoint for each in found.values()}) == COUNT
        assert len({present(each.status.storage.setup).schema for each in found.values()}) == COUNT
        assert len({present(each.status.storage.setup).user for each in found.values()}) == COUNT
        some = [*NAMES[:2], *NAMES[-2:]]
        for name in some:
            await write(s, name)
        for name in some:
            assert await written(s, name) == [f"of-{name}"]

        for name in GONE:
            await s.client.delete(TenantControlPlane, Key("default", name))
        await s.stop()
        await s.start()
        await s.stage.plane.until(lambda: remain(s, LEFT), "every second one is gone", seconds=7200.0)
        assert await ready(s, LEFT)
        assert await written(s, NAMES[-1]) == [f"of-{NAMES[-1]}"]
        users = {present(each.status.storage.setup).user for each in (await tenants(s)).values()}
        assert set(s.keys()["users"]) - {"root"} == users
        await s.stage.plane.until(lambda: clear(s, LEFT), "nothing is left of the others", seconds=60.0)

        for name in LEFT:
            await s.client.delete(TenantControlPlane, Key("default", name))
        await s.stage.plane.until(lambda: remain(s, []), "all are gone", seconds=7200.0)
        assert s.keys() == {"users": ["root"], "roles": ["root"]}
        await s.stage.plane.until(lambda: clear(s), "nothing is left of them", seconds=60.0)


async def remain(s: Site, names: list[str]) -> bool:
    return sorted(await tenants(s)) == sorted(names)


async def clear(s: Site, names: Sequence[str] = ()) -> bool:
    """Whether only these have a Secret or a Service."""
    found = [*(await s.client.list(SECRET, HERE)).items, *(await s.client.list(SERVICE, HERE)).items]
    return {each.name[: len(NAMES[0])] for each in found if each.name.startswith("tenant-")} == set(names)
