"""What sites of any provider need to run hosted control planes in simulation: runners of their Pods, and addresses."""

from __future__ import annotations

from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.install import install
from homeport.builtin.workload.address import ServiceOptions
from homeport.runtime.clock import Clock
from homeport.runtime.manager import Manager
from homeport.runtime.workload.runner import Runners
from homeport.sim.hosted.hosting import Hosting
from homeport.sim.hosted.keyspace import Keyspace
from homeport.sim.hosted.site import ServiceSite
from homeport.sim.machine.fleet import Fleet
from homeport.sim.network import Network


class Estate:
    def __init__(self, network: Network, fleet: Fleet, clock: Clock) -> None:
        self.hosting = Hosting(fleet, clock)
        self._runners = Runners()
        self.hosting.register(self._runners)
        self._services = ServiceOptions(site=ServiceSite(network))

    def install(self, server: EmbeddedServer, manager: Manager) -> None:
        """The loops of the embedded server, those that run Pods included."""
        install(server, manager, self._runners, self._services)

    def keys(self) -> Keyspace:
        """The one etcd."""
        (found,) = self.hosting.datastores.etcds.values()
        return found
