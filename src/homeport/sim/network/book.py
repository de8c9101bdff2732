"""The address book: hosts, their addresses and ports, and what lies between them.

An address may be claimed by several hosts, as on a real segment: the newest claim gets the traffic, and `conflicts`
tells. Two hosts reach each other unless a partition lies between them. Connections know over which two hosts and which
address they were made, and break when that is no longer so.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from homeport.machinery.address import is_address
from homeport.sim.network.address import normal
from homeport.sim.network.service import Service, connect

# The source of connections from outside of the network: the management plane, users with kubectl.
OUTSIDE = "outside"
# 127.64.0.0/10: plenty, and nothing else is configured there. Pods and Services of the plane have other ranges.
_FIRST_LOOPBACK = IPv4Address("127.64.0.1")
_LOOPBACKS = 4_000_000


@dataclass(frozen=True, slots=True)
class Conflict:
    """An address that several hosts claim, the one that answers first."""

    address: str
    hosts: tuple[str, ...]


class Host:
    """One machine's place on the network. Make it with `Network.attach`."""

    __slots__ = ("__weakref__", "_network", "_ports", "addresses", "name", "up")

    def __init__(self, network: Network, name: str) -> None:
        self.name = name
        self.up = True
        self.addresses: list[str] = []
        self._network = network
        self._ports: dict[tuple[str, int], Service] = {}  # by address, '' for all, and port

    def assign(self, address: str) -> None:
        """The host claims an address, and announces it: it gets the traffic from now on."""
        address = normal(address)
        if not is_address(address):
            raise ValueError(f"{address!r} is not a valid IP address")
        if address not in self.addresses:
            self.addresses.append(address)
        self._network._claim(self, address)

    def release(self, address: str) -> None:
        address = normal(address)
        if address in self.addresses:
            self.addresses.remove(address)
            self._network._unclaim(self, address)

    def listen(self, port: int, service: Service, address: str = "") -> None:
        """With an address, only there: what listens at all addresses no longer answers at this one, at any port."""
        self._ports[address and normal(address), port] = service

    def unlisten(self, port: int, address: str = "") -> None:
        address = address and normal(address)
        self._ports.pop((address, port), None)
        self._network._break(
            lambda link: (link.target, link.port) == (self.name, port) and address in ("", link.address)
        )

    def service(self, port: int, address: str = "") -> Service | None:
        own = any(bound == address for bound, _ in self._ports) if address else False
        return self._ports.get((address if own else "", port))

    @property
    def ports(self) -> tuple[int, ...]:
        """Where it listens."""
        return tuple(sorted({port for _, port in self._ports}))

    def set_up(self, up: bool) -> None:
        """A host that is not up answers nothing and loses its connections; its addresses stay its own."""
        if up == self.up:
            return
        self.up = up
        if up:
            for address in self.addresses:
                self._network._claim(self, address)
        else:
            self._network._break(lambda link: self.name in (link.source, link.target))
        self._network._changed(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    source: str
    target: str
    address: str
    port: int
    sock: weakref.ref[socket.socket]


_Test = Callable[[_Link], bool]


@dataclass(frozen=True, slots=True)
class _StandIn:
    port: int
    host: Host
    service: Callable[[str], Service]
    names: frozenset[str] | None


class Network:
    """`silence_seconds`: how long a caller waits before he learns that nobody answers. 0: he learns it at once."""

    def __init__(self, *, silence_seconds: float = 0.0) -> None:
        self.silence_seconds = silence_seconds
        self._hosts: dict[str, Host] = {}
        self._claims: dict[str, list[Host]] = {}  # the last one answers
        self._names: dict[str, tuple[str, ...]] = {}
        self._partitions: dict[str, tuple[frozenset[str], frozenset[str] | None]] = {}
        self._links: set[_Link] = set()
        self._stand_ins: list[_StandIn] = []
        self._next_loopback = random.randrange(_LOOPBACKS)  # noqa: S311 - several networks keep out of each other's way
        self._followers: list[Callable[[frozenset[str] | None], None]] = []

    def follow(self, follower: Callable[[frozenset[str] | None], None]) -> None:
        """Tells `follower` the names of hosts whose reach has changed; None: anybody's may have."""
        self._followers.append(follower)

    def _changed(self, *hosts: str) -> None:
        for follower in self._followers:
            follower(frozenset(hosts) or None)

    # -- hosts and names ---------------------------------------------------------------------------------------

    def attach(self, name: str, addresses: Iterable[str] = ()) -> Host:
        if name in self._hosts:
            raise ValueError(f"the network has a host {name!r} already")
        host = self._hosts[name] = Host(self, name)
        for address in addresses:
            host.assign(address)
        return host

    def detach(self, host: Host) -> None:
        if self._hosts.get(host.name) is host:
            host.set_up(False)
            for address in tuple(host.addresses):
                host.release(address)
            del self._hosts[host.name]

    def host(self, name: str) -> Host | None:
        return self._hosts.get(name)

    def publish_name(self, name: str, *addresses: str) -> None:
        """DNS: what a name stands for. Without addresses it is forgotten."""
        if addresses:
            self._names[normal(name)] = tuple(normal(address) for address in addresses)
        else:
            self._names.pop(normal(name), None)

    def resolve(self, name: str) -> tuple[str, ...]:
        """The addresses of a name. Raises socket.gaierror for a name that nobody published."""
        wanted = normal(name)
        if is_address(wanted):
            return (wanted,)
        found = self._names.get(wanted)
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, f"no such host: {wanted}")
        return found

    def stand_in(
        self, port: int, host: Host, service: Callable[[str], Service], names: Iterable[str] | None = None
    ) -> None:
        """`host` answers at `port` of these names and addresses (None: of any) if no other host answers there.

        A stand-in with names comes before one without. `service` is told what was dialled, so that it can show a
        certificate for it.
        """
        wanted = None if names is None else frozenset(normal(name) for name in names)
        others = [each for each in self._stand_ins if (each.port, each.names) != (port, wanted)]
        self._stand_ins = [*others, _StandIn(port, host, service, wanted)]
        self._stand_ins.sort(key=lambda each: each.names is None)

    def _stand_in_at(self, name: str, port: int) -> tuple[Host, Callable[[str], Service]] | None:
        for each in self._stand_ins:
            if each.port == port and each.host.up and (each.names is None or name in each.names):
                return each.host, each.service
        return None

    def loopback(self) -> str:
        """A loopback address for a server to listen on by itself; a network gives each one once."""
        self._next_loopback = (self._next_loopback + 1) % _LOOPBACKS
        return str(_FIRST_LOOPBACK + self._next_loopback)

    # -- addresses ---------------------------------------------------------------------------------------------

    def holder(self, address: str) -> Host | None:
        """Who answers at an address: the newest claim among the hosts that are up."""
        for host in reversed(self._claims.get(normal(address), ())):
            if host.up:
                return host
        return None

    def conflicts(self) -> list[Conflict]:
        found = []
        for address, hosts in sorted(self._claims.items()):
            live = [host.name for host in reversed(hosts) if host.up]
            if len(live) > 1:
                found.append(Conflict(address, tuple(live)))
        return found

    def _claim(self, host: Host, address: str) -> None:
        before = self.holder(address)
        claims = self._claims.setdefault(address, [])
        if host in claims:
            claims.remove(host)
        claims.append(host)
        if before is not None and before is not host:
            self._break(lambda link: link.address == address)

    def _unclaim(self, host: Host, address: str) -> None:
        claims = self._claims.get(address, [])
        if host in claims:
            claims.remove(host)
        if not claims:
            self._claims.pop(address, None)
        self._break(lambda link: link.address == address and link.target == host.name)

    # -- what lies between -------------------------------------------------------------------------------------

    def partition(self, name: str, hosts: Iterable[str], others: Iterable[str] | None = None) -> None:
        """From now on `hosts` and `others` (None: everybody else, the outside too) don't reach each other."""
        side = frozenset(hosts)
        self._partitions[name] = (side, None if others is None else frozenset(others))
        self._break(lambda link: not self.reaches(link.source, link.target))
        self._changed()

    def heal(self, name: str) -> None:
        self._partitions.pop(name, None)
        self._changed()

    def reaches(self, source: str, target: str) -> bool:
        if source == target:
            return True
        for side, others in self._partitions.values():
            for here, there in ((source, target), (target, source)):
                if here in side and (there not in side if others is None else there in others):
                    return False
        return True

    # -- connections -------------------------------------------------------------------------------------------

    def find(self, source: str, host: str, port: int) -> tuple[Host, str, Service]:
        """Who answers `source` at host:port, by which address. Raises what `connect` would."""
        caller = self._hosts.get(source)
        if caller is not None and not caller.up:
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
        try:
            return self._answer_any(source, self.resolve(host), port)
        except OSError as error:
            stand_in = self._stand_in_at(normal(host), port)
            if stand_in is None or error.errno == errno.ETIMEDOUT:
                raise
            return self._answer_instead(source, normal(host), stand_in)

    def _answer_any(self, source: str, addresses: tuple[str, ...], port: int) -> tuple[Host, str, Service]:
        failure: OSError | None = None
        for address in addresses:
            try:
                return self._answer(source, address, port)
            except OSError as error:
                failure = failure or error
        assert failure is not None
        raise failure

    def _answer_instead(
        self, source: str, dialled: str, stand_in: tuple[Host, Callable[[str], Service]]
    ) -> tuple[Host, str, Service]:
        holder, service = stand_in
        if not self.reaches(source, holder.name):
            raise TimeoutError(errno.ETIMEDOUT, f"i/o timeout: {dialled} does not answer")
        return holder, dialled, service(dialled)

    def _answer(self, source: str, address: str, port: int) -> tuple[Host, str, Service]:
        holder = self.holder(address)
        if holder is None:
            raise OSError(errno.EHOSTUNREACH, f"no route to host: no machine has the address {address}")
        if not self.reaches(source, holder.name):
            raise TimeoutError(errno.ETIMEDOUT, f"i/o timeout: {address} does not answer")
        service = holder.service(port, address)
        if service is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"connection refused: {address} port {port}")
        return holder, address, service

    async def locate(self, source: str, host: str, port: int) -> tuple[Host, str, Service]:
        """As `find`, but without waiting for hosts that do not answer."""
        try:
            return self.find(source, host, port)
        except OSError as error:
            if self.silence_seconds and error.errno in (errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.ENETUNREACH):
                await asyncio.sleep(self.silence_seconds)
            raise

    async def hand(self, sock: socket.socket, source: str, host: str, port: int) -> None:
        """Passes the far end of `sock` to the service at host:port. Raises OSError as connecting would."""
        holder, address, service = await self.locate(source, host, port)
        await service.accept(sock, source)
        self._track(_Link(source, holder.name, address, port, weakref.ref(sock)))

    async def connect(self, source: str, host: str, port: int) -> socket.socket:
        """A connection from a host to host:port, as a socket that does not block."""
        return await connect(lambda far: self.hand(far, source, host, port))

    def _track(self, link: _Link) -> None:
        self._links.add(link)
        if len(self._links) % 64 == 0:
            self._links = {known for known in self._links if _open(known)}

    def connections(self) -> int:
        return sum(1 for link in self._links if _open(link))

    def _break(self, lost: _Test) -> None:
        for link in [link for link in self._links if lost(link)]:
            self._links.discard(link)
            sock = link.sock()
            if sock is not None and sock.fileno() >= 0:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the other side was faster


def _open(link: _Link) -> bool:
    sock = link.sock()
    return sock is not None and sock.fileno() >= 0
