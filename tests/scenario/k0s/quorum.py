"""Watches the quorum of etcd at every moment of a test in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from homeport.runtime.clock import VirtualLoop
from homeport.sim.machine.workload.etcd import Etcd
from scenario.nutanix.site import Site


def has_quorum(etcd: Etcd) -> bool:
    return any(etcd.quorum_at(each.name) for each in etcd.voters)


class Quorum:
    """Looks after every turn of the event loop: nothing happens between two turns."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.looks = 0
        self.most = 0  # voting members
        self.lost: list[str] = []

    def look(self) -> None:
        for cluster in self._site.fleet.clusters():
            etcd = cluster.etcd
            if not (cluster.initialized and etcd.voters):
                continue
            self.looks += 1
            self.most = max(self.most, len(etcd.voters))
            if not has_quorum(etcd):
                states = ", ".join(f"{each.name} {'up' if etcd.alive(each.name) else 'down'}" for each in etcd.voters)
                self.lost.append(f"at {self._site.clock.now()}: {states}")


@asynccontextmanager
async def quorum_kept(site: Site) -> AsyncIterator[Quorum]:
    """etcd of every initialized cluster has its quorum at every moment of the block."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    quorum = Quorum(site)
    loop.after_turn = quorum.look
    try:
        yield quorum
    finally:
        loop.after_turn = None
    assert quorum.looks > 3
    assert not quorum.lost, quorum.lost[:3]
