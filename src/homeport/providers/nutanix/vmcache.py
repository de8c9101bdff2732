"""A cache of the VMs of Nodes: a read of one outdated VM reads all VMs that are in use with one list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from homeport.providers.nutanix.prism.record import Prism, Vm
from homeport.runtime.clock import Clock

_FORGET_SECONDS = 1800.0  # not asked for since: its Node is gone


@dataclass(frozen=True, slots=True)
class _Seen:
    vm: Vm | None
    read_at: float


class VmCache:
    """Calls `prism` for each read, because credentials may have changed since the last one."""

    def __init__(self, prism: Callable[[], Awaitable[Prism]], clock: Clock) -> None:
        self._prism = prism
        self._clock = clock
        self._asked: dict[str, float] = {}
        self._names: dict[str, str] = {}  # that VMs had, or their Nodes: some lists are by name alone
        self._seen: dict[str, _Seen] = {}
        self._lock = asyncio.Lock()

    async def find(self, ids: Sequence[str], *, name: str = "", younger_than: float) -> Vm | None:
        """The first of `ids` that exists. None only after Prism Central has answered 404 for each of them."""
        now = self._clock.monotonic()
        self._asked.update(dict.fromkeys(ids, now))
        self._names = {**dict.fromkeys(ids, name), **self._names}
        async with self._lock:
            if not self._fresh(ids, now - younger_than):
                await self._read(ids)
        return next((seen.vm for each in ids if (seen := self._seen.get(each)) and seen.vm is not None), None)

    def _fresh(self, ids: Sequence[str], since: float) -> bool:
        for each in ids:
            seen = self._seen.get(each)
            if seen is None or seen.read_at < since:
                return False
            if seen.vm is not None:
                return True
        return True

    async def _read(self, ids: Sequence[str]) -> None:
        now = self._clock.monotonic()
        self._asked = {each: asked_at for each, asked_at in self._asked.items() if now - asked_at < _FORGET_SECONDS}
        prism = await self._prism()
        self._names = {each: self._names.get(each, "") for each in self._asked}
        found = {vm.id.lower(): vm for vm in await prism.vms(self._names)}
        self._names |= {each: vm.name for each, vm in found.items()}
        kept = {each: seen for each, seen in self._seen.items() if each in self._asked and each not in found}
        self._seen = kept | {each: _Seen(vm, now) for each, vm in found.items()}
        for each in ids:
            if each in found:
                return
            # Lists of Prism Central may be stale, and the caller deletes Nodes if the answer is None.
            self._seen[each] = _Seen(await prism.vm(each), now)
            if self._seen[each].vm is not None:
                return
