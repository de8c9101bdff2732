"""All built-in loops on one manager."""

from __future__ import annotations

from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin import account, expiry, namespace
from homeport.builtin.garbage import GarbageCollector
from homeport.builtin.workload import install as workload
from homeport.builtin.workload.address import ServiceOptions
from homeport.runtime.manager import Manager
from homeport.runtime.workload.runner import Runners


def install(
    server: EmbeddedServer, manager: Manager, runners: Runners | None = None, services: ServiceOptions | None = None
) -> GarbageCollector:
    """`runners` None: Pods are not run. `services`: where Services answer (default: on loopback)."""
    namespace.install(server, manager)
    account.install(server, manager)
    expiry.install(server, manager)
    if runners is not None:
        workload.install(server, manager, runners, services)
    collector = GarbageCollector(server, manager.recorder)
    manager.job(collector.run)
    return collector
