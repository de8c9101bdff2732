"""What a Prism Central has that manifests can name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from homeport.capi.platform import Entity
from homeport.infra.error import Denied, Rejected
from homeport.infra.platform.image import SYSTEM_MARK, UID_MARK
from homeport.infra.preflight.fit import kubernetes_of, system_of
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.prism.record import Container, Element, Host, Image, Subnet

_GIB = 2**30


async def discover(session: PrismSession) -> list[Entity]:
    """Clusters, images, subnets, storage containers, hosts and failure domains, in this order."""
    session.lookup.forget()  # what is there now
    elements = [each for each in await session.prism.elements() if not each.is_central]
    names = {each.id: each.name for each in elements}
    images, subnets, containers, hosts = await asyncio.gather(
        session.prism.images(), session.prism.subnets(), _containers(session), _hosts(session, elements)
    )
    return [
        *(Entity("cluster", each.id, each.name, details=_some(aos=each.release)) for each in elements),
        *(_image(each, names) for each in images),
        *(_subnet(each, names) for each in subnets),
        *(Entity("storage", each.id, each.name, names.get(each.cluster_id, "")) for each in containers),
        *(Entity("host", host.id, host.name, names[at], details=_host_details(host)) for at, host in hosts),
        *(_domain(each, subnets) for each in elements),
    ]


async def _containers(session: PrismSession) -> list[Container]:
    """None where Prism Central has no API v4: manifests can't name any there."""
    try:
        return await session.prism.containers()
    except (Denied, Rejected):
        return []


async def _hosts(session: PrismSession, elements: Sequence[Element]) -> list[tuple[str, Host]]:
    """None of those that the account may not see."""
    found: list[tuple[str, Host]] = []
    for each in elements:
        try:
            found += [(each.id, host) for host in await session.prism.hosts(each.id)]
        except Denied:
            continue
    return found


def _image(image: Image, names: Mapping[str, str]) -> Entity:
    details = _some(
        system=image.mark(SYSTEM_MARK) or system_of(image.name),
        kubernetes=kubernetes_of(image.name),
        type=image.kind,
        size=_size(image.size_bytes),
    )
    whole = not image.failed and (image.size_bytes > 0 or not image.mark(UID_MARK))
    usable = image.kind == "disk" and whole
    return Entity("image", image.id, image.name, _places(image.cluster_ids, names), usable, details)


def _subnet(subnet: Subnet, names: Mapping[str, str]) -> Entity:
    pools = ", ".join(f"{first}-{last}" for first, last in subnet.pools)
    free = "" if subnet.free_addresses is None else str(subnet.free_addresses)
    details = _some(type=subnet.kind, cidr=subnet.cidr, pools=pools, free=free)
    return Entity("network", subnet.id, subnet.name, _places(subnet.cluster_ids, names), details=details)


def _domain(element: Element, subnets: Sequence[Subnet]) -> Entity:
    """A NutanixFailureDomain names a cluster and subnets of it."""
    there = sorted(each.name for each in subnets if element.id in each.cluster_ids or each.kind == "OVERLAY")
    details = _some(subnets=", ".join(there))
    return Entity("failure-domain", element.id, element.name, element.name, bool(there), details)


def _places(ids: Sequence[str], names: Mapping[str, str]) -> str:
    """'': all of them."""
    found = {names[each] for each in ids if each in names}
    return "" if len(found) == len(names) else ", ".join(sorted(found))


def _some(**details: str) -> dict[str, str]:
    return {name: value for name, value in details.items() if value}


def _host_details(host: Host) -> dict[str, str]:
    return _some(cpu=str(host.threads or ""), memory=_size(host.memory_bytes))


def _size(count: int) -> str:
    return "" if not count else f"{count / _GIB:.0f}Gi" if count >= _GIB else f"{max(1, count * 1024 // _GIB)}Mi"
