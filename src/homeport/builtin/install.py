"""All built-in loops on one manager."""

from __future__ import annotations

from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin import account, expiry, namespace
from homeport.builtin.garbage import GarbageCollector
from homeport.runtime.manager import Manager


def install(server: EmbeddedServer, manager: Manager) -> GarbageCollector:
    namespace.install(server, manager)
    account.install(server, manager)
    expiry.install(server, manager)
    collector = GarbageCollector(server, manager.recorder)
    manager.job(collector.run)
    return collector
