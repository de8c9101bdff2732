"""Addresses of load balancers on the simulated network: each connection goes to one of the backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homeport.sim.network import Balancer, Host, Network

Backends = Sequence[tuple[str, int]]


class Announcer:
    """What kube-vip and the rules of kube-proxy are together."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._hosts: dict[str, Host] = {}
        self._balancers: dict[str, dict[int, Balancer]] = {}

    def hold(self, key: str, address: str, ports: Mapping[int, Backends]) -> None:
        """The address of `key` answers at these ports, and no others."""
        host = self._hosts.get(key)
        if host is None:
            host = self._hosts[key] = self._network.attach(f"harvester load balancer {key}")
        for other in tuple(host.addresses):
            if other != address:
                host.release(other)
        if address not in host.addresses:
            host.assign(address)
        balancers = self._balancers.setdefault(key, {})
        for port in set(balancers) - set(ports):
            host.unlisten(port)
            del balancers[port]
        for port, backends in ports.items():
            if port not in balancers:
                balancers[port] = Balancer(self._network, host, [])
                host.listen(port, balancers[port])
            balancers[port].backends = list(backends)

    def drop(self, key: str) -> None:
        host = self._hosts.pop(key, None)
        self._balancers.pop(key, None)
        if host is not None:
            self._network.detach(host)

    def reaches(self, key: str, address: str, port: int) -> bool:
        """Whether a program answers there: what a TCP health check finds out."""
        try:
            self._network.find(self._hosts[key].name, address, port)
        except (OSError, KeyError):
            return False
        return True

    def close(self) -> None:
        for key in list(self._hosts):
            self.drop(key)
