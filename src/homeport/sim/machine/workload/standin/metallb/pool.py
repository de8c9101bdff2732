"""IPAddressPools, and which address a Service gets from them. Errors are in MetalLB's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
    summarize_address_range,
)
from typing import cast

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.view import matches

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_FAMILIES = {4: "ipv4", 6: "ipv6"}


class PoolProblem(ValueError):
    """A pool that MetalLB refuses."""


class AllocationProblem(Exception):
    """A Service gets no address."""


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    networks: tuple[Network, ...]
    auto_assign: bool = True
    avoid_buggy: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    allocation: Mapping[str, object] | None = None  # spec.serviceAllocation

    def contains(self, address: Address) -> bool:
        if self.avoid_buggy and is_buggy(address):
            return False
        return any(address.version == each.version and address in each for each in self.networks)

    def addresses(self, version: int) -> Iterator[Address]:
        for network in self.networks:
            if network.version == version:
                for number in range(int(network.network_address), int(network.broadcast_address) + 1):
                    address = type(network.network_address)(number)
                    if not (self.avoid_buggy and is_buggy(address)):
                        yield address

    def takes(self, service: Json, namespace_labels: Mapping[str, str]) -> bool:
        """Whether its serviceAllocation lets the Service use it."""
        rule = cast(Json, self.allocation or {})
        names, spaces = rule.get("namespaces") or (), rule.get("namespaceSelectors") or ()
        here = service["metadata"]["namespace"] in names or any(matches(each, namespace_labels) for each in spaces)
        selectors = rule.get("serviceSelectors") or ()
        chosen = any(matches(each, service["metadata"].get("labels")) for each in selectors)
        return (here or not (names or spaces)) and (chosen or not selectors)

    @property
    def priority(self) -> float:
        value = cast(Json, self.allocation or {}).get("priority")
        return float(value) if value else float("inf")  # 0 is the same as none


def is_buggy(address: Address) -> bool:
    """Some devices drop traffic to IPv4 addresses that end in .0 or .255."""
    return address.version == 4 and int(address) & 0xFF in (0, 255)


def parse_pool(obj: Json) -> Pool:
    """Raises PoolProblem."""
    name, spec = str(obj["metadata"]["name"]), obj.get("spec") or {}
    given = spec.get("addresses") or []
    if not given:
        raise PoolProblem(f'pool "{name}" has no prefixes defined')
    networks = tuple(network for text in given for network in _networks(str(text), name))
    return Pool(
        name,
        networks,
        spec.get("autoAssign") is not False,
        bool(spec.get("avoidBuggyIPs")),
        obj["metadata"].get("labels") or {},
        spec.get("serviceAllocation"),
    )


def _networks(text: str, pool: str) -> Iterator[Network]:
    text = text.strip()
    if "-" not in text:
        try:
            if "/" not in text:
                raise ValueError(text)
            yield ip_network(text, strict=False)
        except ValueError:
            raise PoolProblem(
                f'parsing address pool {pool}: invalid CIDR "{text}" in pool "{pool}": invalid CIDR "{text}"'
            ) from None
        return
    low, _, high = text.partition("-")
    problem = f'parsing address pool {pool}: invalid CIDR "{text}" in pool "{pool}": '
    try:
        first, last = ip_address(low.strip()), ip_address(high.strip())
    except ValueError:
        raise PoolProblem(f'{problem}invalid IP range "{text}"') from None
    if first.version != last.version or int(first) > int(last):
        raise PoolProblem(f'{problem}invalid IP range "{text}": start IP "{first}" is after the end IP "{last}"')
    yield from summarize_address_range(first, last)


def check_overlap(pools: Sequence[Pool]) -> None:
    """Raises PoolProblem if two networks, of one pool or of two, have addresses in common."""
    seen: list[Network] = []
    for pool in pools:
        for network in pool.networks:
            for other in seen:
                if network.version == other.version and network.overlaps(other):
                    raise PoolProblem(
                        f'CIDR "{network}" in pool "{pool.name}" overlaps with already defined CIDR "{other}"'
                    )
            seen.append(network)


def usable_pools(objects: Iterable[Json]) -> dict[str, Pool]:
    """The pools of a cluster. One that can't be read makes all of the configuration void, as with MetalLB."""
    try:
        pools = [parse_pool(each) for each in sorted(objects, key=lambda each: str(each["metadata"]["name"]))]
        check_overlap(pools)
    except PoolProblem:
        return {}
    return {pool.name: pool for pool in pools}


@dataclass(frozen=True, slots=True)
class Sharing:
    """Services with the same key and the same backends may have one address, with different ports."""

    key: str
    backend: str

    def allows(self, other: Sharing) -> bool:
        return bool(self.key) and self == other


Port = tuple[str, int]  # protocol and number


@dataclass(slots=True)
class _Use:
    sharing: Sharing
    ports: dict[Port, str] = field(default_factory=dict)  # and the Service that has it
    services: set[str] = field(default_factory=set)


class Allocator:
    """Created again for each look at the cluster: Services that have addresses are assigned first."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        self._pools = pools
        self._uses: dict[Address, _Use] = {}

    def pool_of(self, address: Address) -> str:
        return next((name for name, pool in self._pools.items() if pool.contains(address)), "")

    def assign(self, service: str, address: Address, ports: Iterable[Port], sharing: Sharing) -> None:
        """Raises AllocationProblem."""
        if not self.pool_of(address):
            raise AllocationProblem(f'"{address}" is not allowed in config')
        use = self._uses.get(address)
        if use is None:
            use = self._uses[address] = _Use(sharing)
        elif not use.sharing.allows(sharing):
            others = ",".join(sorted(use.services - {service}))
            raise AllocationProblem(f'can\'t change sharing key for "{service}", address also in use by {others}')
        for protocol, number in ports:
            if use.ports.get((protocol, number), service) != service:
                raise AllocationProblem(f'port {protocol}/{number} is already in use on "{address}"')
        use.ports.update(dict.fromkeys(ports, service))
        use.services.add(service)

    def from_pool(
        self, service: str, versions: Sequence[int], name: str, ports: Sequence[Port], sharing: Sharing
    ) -> list[Address]:
        """One address for each IP family. Raises AllocationProblem."""
        pool = self._pools.get(name)
        if pool is None:
            raise AllocationProblem(f'unknown pool "{name}"')
        found = [self._first_free(service, pool, version, ports, sharing) for version in versions]
        if None in found:
            family = _FAMILIES[versions[0]] if len(versions) == 1 else "dual"
            raise AllocationProblem(f'no available IPs in pool "{name}" for {family} IPFamily')
        addresses = cast(list[Address], found)
        for address in addresses:
            self.assign(service, address, ports, sharing)
        return addresses

    def from_any(
        self,
        service: Json,
        namespace_labels: Mapping[str, str],
        versions: Sequence[int],
        ports: Sequence[Port],
        sharing: Sharing,
    ) -> list[Address]:
        """From the first pool with room: those that are for this Service, by priority, then those for all."""
        key = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
        automatic = [pool for pool in self._pools.values() if pool.auto_assign]
        pinned = [pool for pool in automatic if pool.allocation and pool.takes(service, namespace_labels)]
        for pool in [*sorted(pinned, key=lambda pool: pool.priority), *(p for p in automatic if not p.allocation)]:
            try:
                return self.from_pool(key, versions, pool.name, ports, sharing)
            except AllocationProblem:
                continue
        raise AllocationProblem("no available IPs")

    def _first_free(
        self, service: str, pool: Pool, version: int, ports: Sequence[Port], sharing: Sharing
    ) -> Address | None:
        return next((each for each in pool.addresses(version) if self._free(service, each, ports, sharing)), None)

    def _free(self, service: str, address: Address, ports: Sequence[Port], sharing: Sharing) -> bool:
        use = self._uses.get(address)
        if use is None:
            return True
        return use.sharing.allows(sharing) and all(use.ports.get(port, service) == service for port in ports)
