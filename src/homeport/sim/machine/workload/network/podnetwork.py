"""The network of a cluster's Pods: the simulated network, and behind it the addresses that only the cluster knows."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from homeport.sim.network import Host, Service
from homeport.sim.network.service import connect

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster


@dataclass(frozen=True, slots=True)
class _Listener:
    node: str
    service: Service


class PodNetwork:
    """Seen from a machine of the cluster. Pods that run no program refuse connections."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster
        self._listeners: dict[tuple[str, int], _Listener] = {}

    def listen(self, address: str, port: int, node: str, service: Service) -> None:
        self._listeners[address, port] = _Listener(node, service)

    def unlisten(self, address: str, port: int) -> None:
        self._listeners.pop((address, port), None)

    def host(self, name: str) -> Host | None:
        return self._cluster.network.host(name)

    async def locate(self, source: str, host: str, port: int) -> object:
        """Raises OSError as connecting would."""
        found = self._find(source, host, port)
        return found if found is not None else await self._cluster.network.locate(source, host, port)

    async def hand(self, sock: socket.socket, source: str, host: str, port: int) -> None:
        found = self._find(source, host, port)
        if found is None:
            await self._cluster.network.hand(sock, source, host, port)
        else:
            await found.accept(sock, source)

    async def connect(self, source: str, host: str, port: int) -> socket.socket:
        return await connect(lambda far: self.hand(far, source, host, port))

    def _find(self, source: str, host: str, port: int) -> Service | None:
        """None: the address is not one of the Pods' own."""
        cluster, found = self._cluster, self._listeners.get((host, port))
        if found is None:
            if self._is_pod(host):
                raise ConnectionRefusedError(
                    errno.ECONNREFUSED, f"connection refused: {host} port {port}: the Pod is simulated, nothing listens"
                )
            return None
        kubelet = cluster.kubelets.get(found.node)
        if kubelet is None or not kubelet.guest.running or not cluster.network.reaches(source, kubelet.guest.host.name):
            raise TimeoutError(errno.ETIMEDOUT, f"i/o timeout: {host} does not answer")
        return found.service

    def _is_pod(self, address: str) -> bool:
        """Whether a Pod with a network of its own has the address."""
        for record in self._cluster.server.store.range("pods"):
            pod = orjson.loads(record.value)
            if (pod.get("status") or {}).get("podIP") == address and not pod["spec"].get("hostNetwork"):
                return True
        return False
