"""All VMs of a Prism Central: lists that many clusters share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from homeport.providers.nutanix.prism.record import Prism, Vm
from homeport.runtime.clock import Clock

# A list counts for this many times as long as it took: with thousands of VMs, clusters that are checked at the same
# time share one list, and a small site is asked every time.
_TIMES = 20.0


class Inventory:
    def __init__(self, prism: Prism, clock: Clock) -> None:
        self._prism = prism
        self._clock = clock
        self._reading = asyncio.Lock()
        self._known: Sequence[Vm] = ()
        self._until = 0.0
        self._turn = asyncio.Lock()
        self._begun = self._read = 0  # numbers of lists: of the last one that began, and of the one in `_current`
        self._waiting = 0
        self._current: Sequence[Vm] = ()

    async def vms(self) -> Sequence[Vm]:
        """Not for decisions about VMs of our own: what it returns may be seconds old."""
        async with self._reading:
            began = self._clock.monotonic()
            if began >= self._until:
                self._known = await self._prism.find_vms()
                now = self._clock.monotonic()
                self._until = now + (now - began) * _TIMES
            return self._known

    async def current(self) -> Sequence[Vm]:
        """From a list that begins after this call. Callers that wait while another list is read share the next one:
        many clusters that are created at once do not read all VMs once for each of them."""
        needed = self._begun + 1
        self._waiting += 1
        try:
            async with self._turn:
                if self._read < needed:
                    self._begun += 1
                    self._current = await self._prism.find_vms()
                    self._read = self._begun
                return self._current
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._current = ()  # thousands of VMs: not kept for later, when they may be others
