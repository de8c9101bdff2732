"""Which objects of a workload cluster an add-on has applied: a ConfigMap in that cluster.

It is written before the first object of a change and again after the last one, so that an object can't exist without
being listed. Whoever restores the management cluster from a backup finds it there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from homeport.addons.name import (
    ADDON_LABEL,
    INVENTORY_NAMESPACE,
    MANAGER,
    OWNER_ANNOTATION,
    inventory_name,
    label_value,
    owner_value,
)
from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import find_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Write

Json = dict[str, Any]
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
WRITE = Write(field_manager=MANAGER)


class Ref(NamedTuple):
    """An object of a workload cluster."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The same object may be written in another version of its group."""
        return self.api_version.rpartition("/")[0], self.kind, self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Inventory:
    refs: tuple[Ref, ...] = ()  # in the order in which they were applied
    digest: str = ""  # of what was applied completely
    version: str = ""
    release: str = ""  # NAMESPACE/NAME of the Helm release

    def with_refs(self, refs: Iterable[Ref]) -> Inventory:
        """Lists the given objects, too."""
        known = {each.identity for each in self.refs}
        added = tuple(each for each in refs if each.identity not in known)
        return replace(self, refs=(*self.refs, *added)) if added else self

    def without(self, refs: Iterable[Ref]) -> list[Ref]:
        """Listed objects that are not among the given ones."""
        wanted = {each.identity for each in refs}
        return [each for each in self.refs if each.identity not in wanted]


class ForeignInventory(Exception):
    """A ConfigMap of somebody else has the name of the inventory: it proves nothing, and is left alone."""

    def __init__(self, addon: Key) -> None:
        super().__init__(
            f"ConfigMap {INVENTORY_NAMESPACE}/{inventory_name(addon)} already exists in the cluster and is not the "
            f"inventory of ClusterAddon {addon}: delete or rename it, or set spec.conflictPolicy to Adopt"
        )


async def read_inventory(client: Client, addon: Key) -> Inventory | None:
    """None: the cluster has none. Raises ForeignInventory."""
    found = await find_object(client, CONFIG_MAP, Key(INVENTORY_NAMESPACE, inventory_name(addon)))
    if found is None:
        return None
    data = found.get("data") or {}
    if not _is_own(found, addon):
        raise ForeignInventory(addon)
    refs = _parse(data.get("objects", ""))
    return Inventory(refs, data.get("digest", ""), data.get("version", ""), data.get("release", ""))


async def write_inventory(client: Client, addon: Key, inventory: Inventory) -> None:
    await client.apply(render(addon, inventory), WRITE, kind=CONFIG_MAP, force=True)


async def delete_inventory(client: Client, addon: Key) -> None:
    key = Key(INVENTORY_NAMESPACE, inventory_name(addon))
    try:
        found = await client.get(CONFIG_MAP, key)
        if _is_own(found, addon):
            await client.delete(CONFIG_MAP, key, uid=found.uid)
    except NotFound:
        return


def _is_own(found: Unstructured, addon: Key) -> bool:
    return (found.metadata.get("annotations") or {}).get(OWNER_ANNOTATION) == owner_value(addon)


def render(addon: Key, inventory: Inventory) -> Json:
    lines = [orjson.dumps(list(each)).decode() for each in inventory.refs]
    data = {"objects": "\n".join(lines), "digest": inventory.digest, "version": inventory.version}
    data["release"] = inventory.release
    meta = {
        "name": inventory_name(addon),
        "namespace": INVENTORY_NAMESPACE,
        "labels": {ADDON_LABEL: label_value(addon.name)},
        "annotations": {OWNER_ANNOTATION: owner_value(addon)},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _parse(text: str) -> tuple[Ref, ...]:
    """What can't be read proves nothing, and is left out."""
    found = []
    for line in text.splitlines():
        try:
            fields = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(fields, list) and len(fields) == 4 and all(isinstance(each, str) for each in fields):
            found.append(Ref(*fields))
    return tuple(found)


def digest_of(objects: Iterable[Mapping[str, Any]], *more: str) -> str:
    made = hashlib.sha256()
    for each in objects:
        made.update(orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    for text in more:
        made.update(b"\0" + text.encode())
    return f"sha256:{made.hexdigest()}"
