"""Gives the built-in kinds of one server what they need of it: the store, the clock, admission and connectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homeport.apiserver.kinds import admit
from homeport.apiserver.kinds.cluster.storage import PersistentVolume, PersistentVolumeClaim
from homeport.apiserver.kinds.network.allocation import Allocator
from homeport.apiserver.kinds.network.service import Service
from homeport.apiserver.kinds.pod import eviction
from homeport.apiserver.kinds.pod.log import LogSources
from homeport.apiserver.kinds.pod.portforward import PodPorts
from homeport.apiserver.registry import Registry


@dataclass(frozen=True, slots=True)
class Installed:
    """`logs` is where whoever runs containers registers what they write, `ports` where he says how their ports are
    reached; `stop` ends the following of the store."""

    logs: LogSources
    ports: PodPorts
    allocator: Allocator
    stop: Callable[[], None]


def install(registry: Registry, *, service_network: str = "10.96.0.0/16") -> Installed:
    """Once per registry, before the first request."""
    allocator = Allocator(service_network)
    stop = allocator.follow(registry.store)
    services = registry.catalog.by_plural("", "services")
    if services is not None and isinstance(services.strategy, Service):
        services.strategy.allocator = allocator
    volumes = registry.catalog.by_plural("", "persistentvolumes")
    if volumes is not None and isinstance(volumes.strategy, PersistentVolume):
        volumes.strategy.now = registry.now
    admit.install(registry.admission, registry.store)
    eviction.install(registry)
    logs = LogSources()
    logs.install(registry)
    ports = PodPorts()
    ports.install(registry)
    return Installed(logs, ports, allocator, stop)


def leave_protection(
    registry: Registry, plurals: Sequence[str] = ("persistentvolumes", "persistentvolumeclaims")
) -> None:
    """Claims and volumes keep their finalizers when they are deleted: a controller of this server removes them."""
    for plural in plurals:
        served = registry.catalog.by_plural("", plural)
        if served is not None and isinstance(served.strategy, PersistentVolume | PersistentVolumeClaim):
            served.strategy.controlled = True
