"""Objects of a release on the cluster: read, applied, deleted. Every write may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import find_object
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Client, JsonPatch, Key
from homeport.client.restmapper import RestMapper
from homeport.helm.release.storage import WRITE

Json = dict[str, Any]

MANAGER: Final = WRITE.field_manager
_ATTEMPTS: Final = 4


class Target:
    """One cluster and the namespace of one release. Made for one loop, as is the list of served kinds in it."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self.namespace = namespace
        self._mapper = RestMapper(client)

    async def place(self, obj: Mapping[str, Any]) -> tuple[Resource, Json]:
        """The kind of the object, and the object with its namespace. Raises NotFound if the kind is not served."""
        kind = await self._mapper.find(str(obj["apiVersion"]), str(obj["kind"]))
        metadata = dict(obj["metadata"])
        if kind.namespaced:
            metadata["namespace"] = metadata.get("namespace") or self.namespace
        else:
            metadata.pop("namespace", None)
        return kind, {**obj, "metadata": metadata}

    async def get(self, obj: Mapping[str, Any]) -> Unstructured | None:
        """The live object; None if it, or its kind, does not exist."""
        try:
            kind, placed = await self.place(obj)
            return await self._client.get(kind, _key(placed))
        except NotFound:
            return None

    async def apply(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Unstructured:
        """Server-side apply under Helm's name. Fields that others set in the manifest's place are taken back."""
        kind, placed = await self.place(obj)
        if not dry_run:
            await self._take_over_fields(kind, _key(placed))
        options = WRITE if not dry_run else type(WRITE)(field_manager=MANAGER, dry_run=True)
        return await self._client.apply(placed, options, kind=kind, force=True)

    async def create(self, obj: Mapping[str, Any]) -> Unstructured:
        kind, placed = await self.place(obj)
        return await self._client.create(placed, WRITE, kind=kind)

    async def delete(self, obj: Mapping[str, Any], live: Unstructured) -> bool:
        """Delete this very object, not one that took its name since. Gives whether it is gone already."""
        kind, placed = await self.place(obj)
        try:
            if not live.metadata.get("deletionTimestamp"):
                await self._client.delete(kind, _key(placed), uid=live.uid, propagation="Background")
            left = await self._client.get(kind, _key(placed))
        except NotFound:
            return True
        except Conflict:
            return False
        return left.uid != live.uid

    async def _take_over_fields(self, kind: Resource, key: Key) -> None:
        """Fields that Helm 3 wrote belong to an update, not to an apply: an apply would never remove them again.

        They are moved to the apply of the same manager, as Helm 4 and kubectl do it.
        """
        for _ in range(_ATTEMPTS):
            live = await find_object(self._client, kind, key)
            if live is None:
                return
            moved = moved_fields(live.metadata.get("managedFields") or [])
            if moved is None:
                return
            operations: list[Json] = [
                {"op": "replace", "path": "/metadata/managedFields", "value": moved},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version},
            ]
            try:
                await self._client.patch(kind, key, JsonPatch(operations), WRITE)
                return
            except Conflict:
                continue


def moved_fields(entries: list[Json]) -> list[Json] | None:
    """The entries with those of Helm's updates moved to its apply; None if there are none."""
    updates = [each for each in entries if _is_of(each, "Update")]
    if not updates:
        return None
    applied = next((each for each in entries if _is_of(each, "Apply")), None)
    fields: Json = dict((applied or {}).get("fieldsV1") or {})
    for each in updates:
        fields = _union(fields, each.get("fieldsV1") or {})
    merged = {**(applied or updates[-1]), "operation": "Apply", "fieldsV1": fields}
    others = [each for each in entries if each not in updates and each is not applied]
    return [merged, *others]


def _is_of(entry: Mapping[str, Any], operation: str) -> bool:
    return entry.get("manager") == MANAGER and entry.get("operation") == operation and not entry.get("subresource")


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    merged = dict(one)
    for name, value in other.items():
        merged[name] = _union(merged[name], value) if name in merged else value
    return merged


def _key(obj: Mapping[str, Any]) -> Key:
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
