"""Addresses of Services on the simulated network: each is claimed by one node, which leads to the Service's Pods."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeport.apiserver.webhook.call import CallFailed
from homeport.apiserver.webhook.endpoint import ServiceEndpoints
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.view import View
from homeport.sim.network import Host

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Announcement:
    nodes: Sequence[str]  # that may have the address, the best one first
    services: Sequence[Json]


@dataclass(slots=True)
class _Held:
    node: str
    host: Host
    ports: dict[int, _ServicePort]


class Announcer:
    """`patience`: how long the others wait before one takes over the address of a node that is lost."""

    def __init__(self, cluster: WorkloadCluster, patience: float) -> None:
        self._cluster = cluster
        self._patience = patience
        self._held: dict[str, _Held] = {}
        self._lost: dict[str, float] = {}  # addresses whose node was lost, and when

    def addresses(self) -> frozenset[str]:
        return frozenset(self._held)

    def holder(self, address: str) -> str:
        """The node that has it; '' if none has."""
        return self._held[address].node if address in self._held else ""

    def settle(self, view: View, wanted: Mapping[str, Announcement]) -> None:
        for address in self._held.keys() - wanted.keys():
            self._release(address)
        self._lost = {address: since for address, since in self._lost.items() if address in wanted}
        for address, announcement in wanted.items():
            self._place(view, address, announcement)

    def _place(self, view: View, address: str, announcement: Announcement) -> None:
        held = self._held.get(address)
        if held is not None and held.node not in announcement.nodes:
            self._release(address)
            if not view.alive(held.node):
                self._lost[address] = view.now
        left = self._lost.get(address, 0.0) + self._patience - view.now if address in self._lost else 0.0
        if left > 0:
            view.later(left + 0.1)
            return
        self._lost.pop(address, None)
        for node in announcement.nodes[:1]:
            self._claim(address, node, announcement.services)

    def _claim(self, address: str, node: str, services: Sequence[Json]) -> None:
        kubelet, held = self._cluster.kubelets.get(node), self._held.get(address)
        if kubelet is None:
            return
        host = kubelet.guest.host
        if held is not None and held.host is not host:
            self._release(address)
            held = None
        if held is None:
            held = self._held[address] = _Held(node, host, {})
        if address not in host.addresses:
            host.assign(address)
        self._listen(address, held, services)

    def _listen(self, address: str, held: _Held, services: Sequence[Json]) -> None:
        wanted = {
            int(port["port"]): _ServicePort(
                self._cluster, held.host, service["metadata"]["namespace"], service["metadata"]["name"], port["port"]
            )
            for service in services
            for port in service["spec"].get("ports") or ()
            if (port.get("protocol") or "TCP") == "TCP"
        }
        for number in held.ports.keys() - wanted.keys():
            held.host.unlisten(number, address)
        for number, port in wanted.items():
            if held.ports.get(number) != port or held.host.service(number, address) is None:
                held.host.listen(number, port, address)
        held.ports = wanted

    def _release(self, address: str) -> None:
        held = self._held.pop(address)
        for number in held.ports:
            held.host.unlisten(number, address)
        held.host.release(address)

    def close(self) -> None:
        for address in list(self._held):
            self._release(address)


@dataclass(frozen=True, slots=True)
class _ServicePort:
    """What answers at one port of the address: one of the Service's ready Pods."""

    cluster: WorkloadCluster
    host: Host
    namespace: str
    name: str
    port: int

    async def accept(self, sock: socket.socket, source: str) -> None:
        endpoints = ServiceEndpoints(self.cluster.server.store)
        failure: OSError = ConnectionRefusedError("connection refused")
        for _ in range(_ATTEMPTS):
            try:
                found = endpoints.resolve(self.namespace, self.name, self.port)
            except CallFailed as failed:
                raise ConnectionRefusedError(f"connection refused: {failed}") from failed
            try:
                await self.cluster.pods.hand(sock, self.host.name, found.host, found.port)
            except OSError as error:
                failure = error
                continue
            return
        raise failure
