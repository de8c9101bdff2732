"""IPPools: how many addresses there are, who has which, and who had which before."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.sim.harvester.balancer.range import next_address, parse_ranges, range_of
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import IP_POOL, Json
from homeport.sim.harvester.object import condition, finalizers, leaving, notes, status_of

FINALIZER = "wrangler.cattle.io/harvester-ipam-controller"
RELEASE = "loadbalancer.harvesterhci.io/manuallyReleaseIP"


class PoolError(Exception):
    """An address can't be given; the text is shown on the load balancer."""


class Pools:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._booking = asyncio.Lock()  # one at a time: each sees what the one before it took

    async def settle(self, key: str) -> float | None:
        pool = self._core.mirror.get(IP_POOL, key)
        if pool is None:
            return None
        if leaving(pool):
            kept = [each for each in finalizers(pool) if each != FINALIZER]
            await self._core.patch(IP_POOL, pool, {"metadata": {"finalizers": kept}})
            return None
        await self._report(pool)
        await self._release_by_hand(pool)
        return None

    async def _report(self, pool: Json) -> None:
        status = status_of(pool)
        ranges = parse_ranges(pool["spec"]["ranges"])
        total = sum(len(each) for each in ranges)
        past = status.get("allocatedHistory") or {}
        wanted: dict[str, Any] = {
            "total": total,
            "available": total - len(status.get("allocated") or {}),
            "lastAllocated": status.get("lastAllocated", ""),
            "allocatedHistory": {ip: None for ip in past if range_of(ranges, ip) is None},
        }
        ready = condition(pool, "Ready").get("status") == "True"
        same = ready and all(status.get(name) == wanted[name] for name in ("total", "available"))
        if same and not wanted["allocatedHistory"] and FINALIZER in finalizers(pool):
            return
        if not ready:
            wanted["conditions"] = [{"type": "Ready", "status": "True", "lastUpdateTime": self._core.stamp}]
        held = [*(each for each in finalizers(pool) if each != FINALIZER), FINALIZER]
        await self._write(pool, wanted, finalizers=held)

    async def _release_by_hand(self, pool: Json) -> None:
        """`IP: namespace/name` in an annotation frees an address whose load balancer is gone."""
        asked = notes(pool).get(RELEASE)
        if not asked:
            return
        address, _, owner = (part.strip() for part in asked.partition(":"))
        if (status_of(pool).get("allocated") or {}).get(address) == owner:
            await self.release(str(pool["metadata"]["name"]), owner)
        fresh = self._core.mirror.get(IP_POOL, pool["metadata"]["name"]) or pool
        await self._core.patch(IP_POOL, fresh, {"metadata": {"annotations": {RELEASE: None}}})

    async def book(self, name: str, owner: str) -> Json:
        """An address for `owner` (namespace/name): the one it has, or had, or the next. Raises PoolError."""
        async with self._booking:
            pool = self._core.mirror.get(IP_POOL, name)
            if pool is None or leaving(pool) or condition(pool, "Ready").get("status") != "True":
                raise PoolError(f"fail to get allocator {name}")
            status, ranges = status_of(pool), parse_ranges(pool["spec"]["ranges"])
            allocated = status.get("allocated") or {}
            address = next((ip for ip, held in allocated.items() if held == owner), "")
            if not address:
                history = status.get("allocatedHistory") or {}
                before = next((ip for ip, had in history.items() if had == owner and ip not in allocated), "")
                address = before or next_address(ranges, allocated, status.get("lastAllocated", ""))
                if not address:
                    shown = ",".join(str(each) for each in ranges)
                    why = f"no IP addresses available in range set: {shown}"
                    raise PoolError(f"fail to get ip from pool {name}, error: {why}")
                await self._write(
                    pool,
                    {
                        "allocated": {address: owner},
                        "allocatedHistory": {address: None},
                        "lastAllocated": address,
                        "available": status.get("available", 0) - 1,
                    },
                )
        within = range_of(ranges, address)
        assert within is not None
        made = {"ipPool": name, "ip": address, "mask": str(within.network.netmask)}
        return {**made, "gateway": str(within.gateway)} if within.gateway is not None else made

    async def release(self, name: str, owner: str) -> None:
        async with self._booking:
            pool = self._core.mirror.get(IP_POOL, name)
            if pool is None:
                return
            status = status_of(pool)
            for address, held in (status.get("allocated") or {}).items():
                if held == owner:
                    patch = {"allocated": {address: None}, "allocatedHistory": {address: owner}}
                    await self._write(pool, {**patch, "available": status.get("available", 0) + 1})

    async def _write(self, pool: Json, status: Json, **meta: Any) -> None:
        """Others book here, too: a write on top of something that was not seen is refused."""
        seen = {"resourceVersion": pool["metadata"]["resourceVersion"], **meta}
        await self._core.patch(IP_POOL, pool, {"metadata": seen, "status": status})
