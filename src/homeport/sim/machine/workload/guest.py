"""What a workload cluster needs to know of a machine that it runs on."""

from __future__ import annotations

from typing import Protocol

from homeport.sim.machine.console import Console
from homeport.sim.network import Host


class Guest(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def host(self) -> Host: ...

    @property
    def console(self) -> Console: ...

    @property
    def cni(self) -> bool:
        """Its image brings a network for Pods along; without, a node is not ready until its cluster has one."""

    def pull_problem(self, image: str) -> str:
        """Why an image can't be pulled there; '' if it can."""

    @property
    def running(self) -> bool:
        """Powered on, and its services started."""
