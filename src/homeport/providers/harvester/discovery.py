"""What a Harvester has that manifests can name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.capi.platform import Entity
from homeport.infra.error import Denied
from homeport.infra.preflight.fit import kubernetes_of, system_of
from homeport.machinery.quantity import parse_quantity
from homeport.providers.harvester.image import image_fact
from homeport.providers.harvester.imageimport import OS_LABEL
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import IMAGE, NETWORK, NODE, STORAGE_CLASS, ZONE
from homeport.runtime.cache import labels_of

_GIB = 2**30
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


async def discover(session: HarvesterSession) -> list[Entity]:
    """The cluster itself, images, networks, storage classes, hosts and failure domains, in this order."""
    images = await _listed(session, IMAGE) if session.harvester else []
    hosts = await _listed(session, NODE)
    return [
        Entity("cluster", session.location.identity or session.access.server, session.access.server),
        *(_image(each) for each in images),
        *(_network(each) for each in await _listed(session, NETWORK)),
        *(_class(each) for each in await _listed(session, STORAGE_CLASS)),
        *(_host(each) for each in hosts),
        *_domains(hosts),
    ]


async def _listed(session: HarvesterSession, kind: Resource) -> Sequence[Unstructured]:
    """Those of its own namespace, or none, where the account may not see more."""
    try:
        return await session.list(kind)
    except Denied:
        if not kind.namespaced:
            return []
    try:
        return await session.list(kind, session.namespace)
    except Denied:
        return []


def _image(image: Unstructured) -> Entity:
    id_, shown, usable, size = image_fact(image)
    details = {
        "title": shown,
        "system": str(labels_of(image).get(OS_LABEL) or "") or system_of(shown),
        "kubernetes": kubernetes_of(shown),
        "size": f"{size / _GIB:.0f}Gi" if size else "",
    }
    return Entity("image", id_, id_, usable=usable, details=_some(details))


def _network(network: Unstructured) -> Entity:
    name = f"{network.namespace}/{network.name}"
    try:
        config = orjson.loads((network.get("spec") or {}).get("config") or "{}")
    except ValueError:
        config = {}
    details = {"type": str(config.get("type") or ""), "vlan": str(config.get("vlan") or "")}
    return Entity("network", network.uid, name, details=_some(details))


def _class(found: Unstructured) -> Entity:
    default = (found.metadata.get("annotations") or {}).get(_DEFAULT) == "true"
    details = {"provisioner": str(found.get("provisioner") or ""), "default": "yes" if default else ""}
    return Entity("storage", found.uid, found.name, details=_some(details))


def _host(node: Unstructured) -> Entity:
    has = (node.get("status") or {}).get("allocatable") or {}
    memory = int(parse_quantity(has.get("memory") or "0").amount)
    details = {"cpu": str(has.get("cpu") or ""), "memory": f"{memory / _GIB:.0f}Gi", "zone": _zone(node)}
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in _conditions(node))
    usable = ready and not (node.get("spec") or {}).get("unschedulable")
    return Entity("host", node.uid, node.name, usable=usable, details=_some(details))


def _domains(hosts: Sequence[Unstructured]) -> list[Entity]:
    """The zones of the hosts."""
    zones: dict[str, list[str]] = defaultdict(list)
    for each in hosts:
        if zone := _zone(each):
            zones[zone].append(each.name)
    return [
        Entity("failure-domain", zone, zone, details={"hosts": ", ".join(sorted(names))})
        for zone, names in sorted(zones.items())
    ]


def _zone(node: Unstructured) -> str:
    return str(labels_of(node).get(ZONE) or "")


def _conditions(node: Unstructured) -> Sequence[dict[str, str]]:
    return (node.get("status") or {}).get("conditions") or ()


def _some(details: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in details.items() if value}
