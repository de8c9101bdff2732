"""Objects of a release whose records are gone: somebody deleted the Secrets of Helm, and the objects stayed.

The inventory of the add-on proves that the release is the add-on's own, and the marks of Helm on each object prove that
the object is the release's.
"""

from __future__ import annotations

from homeport.addons.target.inventory import CONFIG_MAP
from homeport.addons.target.object import Target
from homeport.addons.target.watch import RELEASED
from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import drop_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, Query
from homeport.client.restmapper import RestMapper
from homeport.helm.release.content import is_kept, uninstall_waves
from homeport.helm.release.ownership import foreign

_NOT_LISTED = (404, 405)


async def remove_remnants(target: Target, namespace: str, name: str) -> list[str]:
    """What is still there. The next wave is deleted when the one before is gone. Raises ApiError."""
    if await _is_recorded_elsewhere(target, namespace, name):
        return []
    kinds: dict[str, Resource] = {}
    found: list[Unstructured] = []
    for kind in await RestMapper(target.client).listed():
        for each in await _released(target, kind):
            if not foreign(each, name, namespace) and not is_kept(each) and not await _stays(target, kind, each):
                kinds[each.uid] = kind
                found.append(each)
    for wave in uninstall_waves(found):
        for obj in wave:
            await _delete(target, kinds[obj["metadata"]["uid"]], obj)
        return [f"{obj['kind']} {obj['metadata']['name']} is being deleted" for obj in wave]
    return []


async def _is_recorded_elsewhere(target: Target, namespace: str, name: str) -> bool:
    """Helm can keep its records in ConfigMaps, too: then the release is not the one that we installed."""
    query = Query(namespace=namespace, labels=f"owner=helm,name={name}")
    return bool((await target.client.list(CONFIG_MAP, query)).items)


async def _released(target: Target, kind: Resource) -> list[Unstructured]:
    try:
        items = (await target.client.list(kind, RELEASED)).items
    except ApiError as error:
        if error.http_code in _NOT_LISTED:  # reviews and the like
            return []
        raise
    for each in items:  # lists may leave these out
        each.setdefault("apiVersion", kind.api_version)
        each.setdefault("kind", kind.kind)
    return list(items)


async def _stays(target: Target, kind: Resource, obj: Unstructured) -> bool:
    if kind.kind == "CustomResourceDefinition":
        return await target.in_use(obj)
    return kind.kind == "Namespace"


async def _delete(target: Target, kind: Resource, obj: dict[str, object]) -> None:
    live = Unstructured(obj)
    if live.metadata.get("deletionTimestamp"):
        return
    target.fence()
    await drop_object(target.client, kind, Key(live.namespace, live.name), uid=live.uid, propagation="Background")
