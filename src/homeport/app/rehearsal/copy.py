"""Reads a plane's objects for a rehearsal: what belongs to clusters, with the Secrets that they use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.app.denial import explain_denial
from homeport.app.tree.read import Reader
from homeport.client.errors import Forbidden
from homeport.client.protocol import Client, Query

_SECRET = Resource("", "v1", "Secret", "secrets")
_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
# Shared settings, credentials and templates of the platforms, and the global credentials of Nutanix.
_SYSTEM = ("butler-system", "kcm-system", "capx-system")


class NotReadable(Exception):
    """The user may not read something that a rehearsal needs."""


@dataclass(slots=True)
class PlaneCopy:
    objects: list[Unstructured] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=set)


async def copy_plane(client: Client, namespaces: Iterable[str]) -> PlaneCopy:
    """The objects of these namespaces, of the tenants in them and of the platforms. Raises NotReadable."""
    reader = Reader(client)
    made = PlaneCopy()
    kinds = await reader.kinds()
    wanted, there = {*namespaces, *_SYSTEM}, {each.name: each for each in await _listed(client, _NAMESPACE, "")}
    for kind in kinds:
        if not kind.namespaced:
            made.objects += await _listed(client, kind, "")
    while left := sorted((wanted & there.keys()) - made.namespaces):
        for space in left:
            made.namespaces.add(space)
            made.objects.append(there[space])
            for kind in (*kinds, _SECRET, _CONFIG_MAP):
                found = await _listed(client, kind, space) if kind.namespaced else ()
                made.objects += found
                wanted |= {str(each["status"].get("tenantNamespace") or "") for each in found if _has_status(each)}
    return made


def _has_status(obj: Mapping[str, Any]) -> bool:
    return isinstance(obj.get("status"), dict)


async def _listed(client: Client, kind: Resource, namespace: str) -> list[Unstructured]:
    try:
        found = list((await client.list(kind, Query(namespace=namespace))).items)
    except Forbidden as error:
        raise NotReadable(f"the plan reads all objects of the namespaces, but {explain_denial(error)}") from error
    for each in found:
        each.setdefault("apiVersion", kind.api_version)
        each.setdefault("kind", kind.kind)
    return found
