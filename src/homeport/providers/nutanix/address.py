"""Addresses that machines get from pools: Prism assigns them on subnets that it manages, each only once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.infra.error import Misconfigured, ProviderError, Taken
from homeport.infra.preflight.pool import FindPool, read_pool
from homeport.infra.protocol import Check, StaticAddress
from homeport.machinery.address import AddressSet
from homeport.providers.nutanix.prism.record import NewNic, Subnet

FIELD = "addressesFromPools"


def plan_nics(subnets: Sequence[Subnet], addresses: Sequence[StaticAddress]) -> list[NewNic]:
    """Raises Misconfigured for an address that its subnet can't have."""
    if len(addresses) > len(subnets):
        raise Misconfigured(f"spec.{FIELD}: {too_many(len(addresses), len(subnets))}")
    for number, (subnet, given) in enumerate(zip(subnets, addresses, strict=False)):
        wrong = misfit(subnet, AddressSet.parse([given.address]), f"{given.address} of {given.pool}")
        if wrong is not None:
            raise Misconfigured(f"spec.{FIELD}[{number}]: {wrong[1]}")
    asked = [each.address for each in addresses] + [""] * (len(subnets) - len(addresses))
    return [NewNic(subnet.id, address) for subnet, address in zip(subnets, asked, strict=True)]


def misfit(subnet: Subnet, wanted: AddressSet, what: str) -> tuple[str, str] | None:
    """Why machines on this subnet can't have these addresses: (reason, sentence)."""
    if wanted.version == 6:
        text = f"{what} is IPv6; machines on AHV get IPv6 addresses from their router: remove the entry"
        return "AddressFamilyNotSupported", text
    if not subnet.cidr:
        text = f"subnet {subnet.name!r} has no IP address management: Prism can't assign {what} to a machine there"
        return "SubnetNotManaged", f"{text}; enable it for the subnet, or remove the entry"
    outside = wanted.without(AddressSet.parse([subnet.cidr]))
    if outside:
        text = f"{what}: {outside} is outside the network {subnet.cidr} of subnet {subnet.name!r}"
        return "AddressOutsideSubnet", f"{text}; use another pool or subnet"
    return None


def too_many(pools: int, cards: int) -> str:
    return f"{pools} pools for {cards} network cards; name a subnet for each, in the same order"


def explained(error: ProviderError, addresses: Sequence[StaticAddress]) -> ProviderError:
    """What to do about an address that somebody else has."""
    if not isinstance(error, Taken) or not addresses:
        return error
    asked = ", ".join(f"{each.address} of {each.pool}" for each in addresses)
    text = f"{error.message}; requested: {asked}: free it, or exclude it from the pool and delete the Machine"
    return Taken(text, code=error.code)


# -- before there is a machine -----------------------------------------------------------------------------------


def check_pools(
    namespace: str,
    refs: Sequence[IPPoolReference],
    subnets: Sequence[Subnet | None],
    find: FindPool,
    condition: str,
    where: str,
) -> Iterator[Check]:
    """A pool for each network card. Of pools that others keep only the subnet can be looked at."""
    if len(refs) > len(subnets):
        text = f"{where}: spec.template.spec.{FIELD}: {too_many(len(refs), len(subnets))}"
        yield Check(condition, False, "InvalidConfiguration", text)
    for number, (ref, subnet) in enumerate(zip(refs, subnets, strict=False)):
        field = f"{where}: spec.template.spec.{FIELD}[{number}]"
        wanted, problem = read_pool(namespace, ref, find)
        wrong = misfit(subnet, wanted, f"{ref.kind} {ref.name}") if subnet is not None else None
        if problem is not None:
            yield Check(condition, False, problem[0], f"{field}: {problem[1]}", waiting=True)
        elif wrong is not None:
            yield Check(condition, False, wrong[0], f"{field}: {wrong[1]}")
