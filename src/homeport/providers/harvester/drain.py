"""Evictions of VMs whose strategy is External: the Node is drained first, then the VM restarts on another host."""

from __future__ import annotations

from homeport.providers.harvester.node import Nodes
from homeport.providers.harvester.observation import Machine
from homeport.providers.harvester.plan import Scope
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait


class Drain:
    def __init__(self, clock: Clock, nodes: Nodes) -> None:
        self._clock = clock
        self._nodes = nodes

    async def converge(self, scope: Scope, machine: Machine) -> Wait | None:
        del scope, machine
        return None
