"""All VMs of a Prism Central, for checks before a cluster is created."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from homeport.providers.nutanix.prism.record import Prism, Vm
from homeport.runtime.clock import Clock

# A list counts for this many times as long as it took: with thousands of VMs, clusters that are checked at the same
# time share one list, and a small site is asked every time.
_TIMES = 20.0


class Inventory:
    """Not for decisions about VMs of our own: what it returns may be seconds old."""

    def __init__(self, prism: Prism, clock: Clock) -> None:
        self._prism = prism
        self._clock = clock
        self._reading = asyncio.Lock()
        self._known: Sequence[Vm] = ()
        self._until = 0.0

    async def vms(self) -> Sequence[Vm]:
        async with self._reading:
            began = self._clock.monotonic()
            if began >= self._until:
                self._known = await self._prism.find_vms()
                now = self._clock.monotonic()
                self._until = now + (now - began) * _TIMES
            return self._known
