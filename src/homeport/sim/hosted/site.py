"""Services of the plane on the simulated network: machines and users reach them at addresses of their own."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from homeport.sim.network import Balancer, Host, Network
from homeport.sim.network.service import Loopback

# No subnet of the built-in worlds.
POOL = "10.240.0.10-10.240.63.250"
NODE = "10.240.0.1"

Backend = tuple[str, int]


class ServiceBalancer(Balancer):
    """Backends that are not on the network are Pods that listen on this machine's loopback."""

    async def accept(self, sock: socket.socket, source: str) -> None:
        try:
            await super().accept(sock, source)
        except ConnectionResetError:
            for host, port in self.backends:
                if host.startswith("127.") and self._network.holder(host) is None:
                    await Loopback(host, port).accept(sock, source)
                    return
            raise


class ServiceSite:
    """`pool` and `node` are addresses that nothing else on the network has."""

    def __init__(self, network: Network, *, pool: str = POOL, node: str = NODE) -> None:
        self.pool = pool
        self.node = node
        self._network = network
        self._plane = network.attach("homeport-plane", [node])
        self._hosts: dict[str, Host] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._node_ports: dict[str, set[int]] = {}

    def publish(
        self,
        service: str,
        ports: Mapping[tuple[str, int], Sequence[Backend]],
        names: Mapping[str, Sequence[str]],
    ) -> None:
        host = self._hosts.get(service)
        if host is None:
            host = self._hosts[service] = self._network.attach(f"service {service}")
        own = {at: found for at, found in ports.items() if at[0] != self.node}
        self._address(host, [address for address, _ in own])
        self._listen(host, {port: found for (_, port), found in own.items()}, self._listening(host))
        self._publish_node_ports(service, {port: found for (at, port), found in ports.items() if at == self.node})
        for name in self._names.get(service, ()):
            if name not in names:
                self._network.publish_name(name)
        self._names[service] = tuple(names)
        for name, addresses in names.items():
            self._network.publish_name(name, *addresses)

    def withdraw(self, service: str) -> None:
        host = self._hosts.pop(service, None)
        if host is None:
            return
        self._publish_node_ports(service, {})
        for name in self._names.pop(service, ()):
            self._network.publish_name(name)
        self._network.detach(host)

    def _publish_node_ports(self, service: str, ports: Mapping[int, Sequence[Backend]]) -> None:
        before = self._node_ports.pop(service, set())
        if ports:
            self._node_ports[service] = set(ports)
        self._listen(self._plane, ports, before)

    def _address(self, host: Host, addresses: Sequence[str]) -> None:
        for address in tuple(host.addresses):
            if address not in addresses:
                host.release(address)
        for address in addresses:
            if address not in host.addresses:
                host.assign(address)

    def _listening(self, host: Host) -> set[int]:
        return {port for port in host.ports if isinstance(host.service(port), ServiceBalancer)}

    def _listen(self, host: Host, ports: Mapping[int, Sequence[Backend]], before: set[int]) -> None:
        for port in before - ports.keys():
            host.unlisten(port)
        for port, backends in ports.items():
            known = host.service(port)
            if isinstance(known, ServiceBalancer):
                known.backends = list(backends)
            else:
                host.listen(port, ServiceBalancer(self._network, host, list(backends)))
