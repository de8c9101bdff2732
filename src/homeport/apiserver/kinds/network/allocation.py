"""Cluster IPs and node ports of Services: which are taken, and a free one.

Nothing is stored: the Services themselves are the record. What was given to a Service that is being written counts as
taken for a few seconds, unless it is asked for again by the same Service.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import orjson

from homeport.apiserver.resource import Json
from homeport.store import Change, Store

T = TypeVar("T", str, int)
_PENDING_SECONDS = 10.0
_PROBES = 64


class Taken(Generic[T]):
    """Values in use, by the key (namespace/name) of who uses them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._users: dict[T, str] = {}
        self._held: dict[str, frozenset[T]] = {}
        self._pending: dict[T, tuple[str, float]] = {}
        self._clock = clock

    def put(self, key: str, values: Iterable[T]) -> None:
        self.drop(key)
        found = frozenset(values)
        if found:
            self._held[key] = found
            for value in found:
                self._users[value] = key
                self._pending.pop(value, None)

    def drop(self, key: str) -> None:
        for value in self._held.pop(key, ()):
            if self._users.get(value) == key:
                del self._users[value]

    def by_other(self, value: T, key: str) -> bool:
        """Whether somebody else than `key` has it."""
        user = self._users.get(value)
        if user is not None:
            return user != key
        pending = self._pending.get(value)
        return pending is not None and pending[0] != key and pending[1] > self._clock()

    def reserve(self, value: T, key: str) -> None:
        now = self._clock()
        if len(self._pending) > 1024:
            self._pending = {v: p for v, p in self._pending.items() if p[1] > now}
        self._pending[value] = (key, now + _PENDING_SECONDS)


class Allocator:
    """Addresses from `network` (the first is the API server's own) and ports from `ports`."""

    def __init__(self, network: str = "10.96.0.0/16", ports: range = range(30000, 32768)) -> None:
        self.network = ipaddress.ip_network(network)
        self.ports = ports
        self.addresses: Taken[str] = Taken()
        self.node_ports: Taken[int] = Taken()

    def follow(self, store: Store) -> Callable[[], None]:
        """Knows the Services of the store from now on. Returns the way to stop."""

        def take(changes: list[Change]) -> None:
            for change in changes:
                if change.record is None:
                    self.addresses.drop(change.name)
                    self.node_ports.drop(change.name)
                else:
                    self._learn(change.name, orjson.loads(change.record.value))

        stop = store.subscribe("services", take)
        for record in store.range("services"):
            self._learn(record.name, orjson.loads(record.value))
        return stop

    def _learn(self, key: str, service: Json) -> None:
        spec = service.get("spec") or {}
        self.addresses.put(key, [ip for ip in spec.get("clusterIPs") or () if ip != "None"])
        self.node_ports.put(key, ports_of(spec))

    @property
    def first_address(self) -> str:
        return str(self.network[1])

    def contains(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return found in self.network and found not in (self.network[0], self.network[-1])

    def free_address(self, key: str) -> str | None:
        size = self.network.num_addresses
        for _ in range(_PROBES):
            # The lower part is left to those who ask for a certain address.
            found = str(self.network[_offset(size)])
            if not self.addresses.by_other(found, key):
                self.addresses.reserve(found, key)
                return found
        for offset in range(2, size - 1):
            found = str(self.network[offset])
            if not self.addresses.by_other(found, key):
                self.addresses.reserve(found, key)
                return found
        return None

    def free_port(self, key: str, avoid: Iterable[int] = ()) -> int | None:
        taken = set(avoid)
        free = [p for p in self.ports if p not in taken and not self.node_ports.by_other(p, key)]
        if not free:
            return None
        chosen = secrets.choice(free)
        self.node_ports.reserve(chosen, key)
        return chosen


def _offset(size: int) -> int:
    low = min(256, size // 16) or 1
    return low + secrets.randbelow(size - low - 1)


def ports_of(spec: Json) -> list[int]:
    found = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    if spec.get("healthCheckNodePort"):
        found.append(spec["healthCheckNodePort"])
    return found
