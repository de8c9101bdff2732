"""The ConfigMaps and Secrets of sets: watched by their metadata, read when they changed or are to be applied.

Their content is not cached: manifests are large, and Secrets are confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Object, Resource
from homeport.capi.name import RESOURCE_SET_SECRET_TYPE, Reason
from homeport.client.absence import find_object
from homeport.client.protocol import Client, Key
from homeport.core.clusterresourceset.plan import Ref
from homeport.machinery.manifest import Json, ManifestError, content, parse_objects
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager

KINDS = {
    "ConfigMap": Resource("", "v1", "ConfigMap", "configmaps"),
    "Secret": Resource("", "v1", "Secret", "secrets"),
}
METADATA = {kind: metadata_only(resource) for kind, resource in KINDS.items()}


@dataclass(slots=True)
class Source:
    """One resource of a set as it is now. With `trouble` it can't be applied anywhere."""

    ref: Ref
    metadata: Object | None = None
    digest: str = ""
    reason: str = Reason.NOT_APPLIED
    trouble: str = ""
    objects: list[Json] | None = None  # None: not read in this loop


@dataclass(frozen=True, slots=True)
class _Known:
    version: str
    digest: str
    reason: str
    trouble: str


class Sources:
    def __init__(self, manager: Manager) -> None:
        self._client: Client = manager.client
        self._caches = {kind: manager.informers.get(each).cache for kind, each in METADATA.items()}
        self._known: dict[tuple[str, Key], _Known] = {}

    async def look(self, namespace: str, ref: Ref) -> Source:
        """Costs a read only when the resource has changed since the last look."""
        key = Key(namespace, ref.name)
        metadata = self._caches[ref.kind].get(key)
        if metadata is None:
            self._known.pop((ref.kind, key), None)
            return _missing(ref, namespace)
        known = self._known.get((ref.kind, key))
        if known is None or known.version != metadata.metadata.resource_version:
            return await self.read(namespace, ref, metadata)
        return Source(ref, metadata, known.digest, known.reason, known.trouble)

    async def read(self, namespace: str, ref: Ref, metadata: Object | None) -> Source:
        """With the objects that it holds."""
        key = Key(namespace, ref.name)
        found = await find_object(self._client, KINDS[ref.kind], key)
        if found is None:
            return _missing(ref, namespace)
        source = _parsed(ref, found)
        source.metadata = metadata
        self._known[ref.kind, key] = _Known(found.resource_version, source.digest, source.reason, source.trouble)
        return source


def _missing(ref: Ref, namespace: str) -> Source:
    return Source(ref, trouble=f"it does not exist in namespace {namespace}: create it")


def _parsed(ref: Ref, found: Mapping[str, Any]) -> Source:
    if ref.kind == "Secret" and found.get("type") != RESOURCE_SET_SECRET_TYPE:
        said = f"it is of type {found.get('type')}: create it again with type {RESOURCE_SET_SECRET_TYPE}"
        return Source(ref, reason=Reason.WRONG_SECRET_TYPE, trouble=said)
    try:
        texts, digest = content({**found, "kind": ref.kind})
        return Source(ref, digest=digest, objects=parse_objects(texts))
    except ManifestError as error:
        return Source(ref, trouble=str(error))
