"""Two replicas of the controllers: one works, and the other goes on where it stopped."""

from __future__ import annotations

import asyncio
import contextlib

from conformance.provider.provider_plane import provider_plane
from conformance.provider.vendor import Open
from homeport.runtime.manager import Elected
from homeport.runtime.testing import virtual


@virtual
async def test_of_two_replicas_one_works_and_the_other_goes_on_where_it_stopped(vendor: Open) -> None:
    async with provider_plane(vendor, start=False) as g:
        replicas = [g.manager(Elected("default", "provider")) for _ in range(2)]
        tasks = [asyncio.create_task(each.run()) for each in replicas]
        try:
            await g.cluster()
            g.vendor.slow_operations(5.0)
            names = [f"m{number}" for number in range(6)]
            for name in names:
                await g.machine(name)
            await g.being_created("m0")
            leader = next(number for number, each in enumerate(replicas) if each.ready.is_set())
            tasks[leader].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await tasks[leader]
            await g.ready(*names)
            assert sorted(g.vendor.created) == names
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
