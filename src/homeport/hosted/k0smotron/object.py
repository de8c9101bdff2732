"""Objects of a k0smotron Cluster in its host cluster: written, found and deleted, and never those of others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.pki import SECRET
from homeport.client.absence import drop_object, find_object
from homeport.client.protocol import Key, Query, Write
from homeport.hosted.k0smotron.host import CONFIG_MAP
from homeport.hosted.k0smotron.pod.patch import apply_patches
from homeport.hosted.k0smotron.scope import ClusterScope
from homeport.hosted.ownership import NameTaken, is_ours
from homeport.runtime.clock import Clock
from homeport.runtime.workload.kind import SERVICE, STATEFUL_SET

Json = dict[str, Any]

INGRESS = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
CRON_JOB = Resource("batch", "v1", "CronJob", "cronjobs")
_KINDS = {each.kind: each for each in (SERVICE, STATEFUL_SET, SECRET, CONFIG_MAP, INGRESS, CRON_JOB)}

REPAIR_SECONDS = 600.0  # what somebody else changed is put right after so long


class HostObjects:
    def __init__(self, write: Write, clock: Clock) -> None:
        self._write = write
        self._clock = clock
        # What was written for each Cluster: its digest and when.
        self._written: dict[Key, dict[tuple[str, str], tuple[bytes, float]]] = {}

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)

    async def put(self, scope: ClusterScope, obj: Json) -> Unstructured | None:
        """Writes an object. None: it was written not long ago, and nothing about it has changed since."""
        made = apply_patches(obj, scope.object.spec.patches)
        what = (obj["kind"], obj["metadata"]["name"])
        digest = hashlib.sha256(orjson.dumps(made, option=orjson.OPT_SORT_KEYS)).digest()
        known = self._written.setdefault(scope.key, {})
        now = self._clock.monotonic()
        before = known.get(what)
        if before is not None and before[0] == digest and now - before[1] < REPAIR_SECONDS:
            return None
        known.pop(what, None)
        await self.find_own(scope, _KINDS[obj["kind"]], what[1])
        written = await scope.required_host.client.apply(made, self._write, kind=_KINDS[obj["kind"]], force=True)
        known[what] = (digest, now)
        return written

    async def find_own(self, scope: ClusterScope, kind: Resource, name: str) -> Unstructured | None:
        """Another Cluster, or a user, may have an object of the name that ours gets. Raises NameTaken."""
        found = await self.find(scope, kind, name)
        if found is not None and not is_ours(found, scope.required_host.owner):
            key = Key(scope.key.namespace, name)
            raise NameTaken(
                f"{kind.kind} {key} exists and belongs to something else: delete it, or give the Cluster another name"
            )
        return found

    async def put_and_read(self, scope: ClusterScope, obj: Json) -> Unstructured:
        kind, key = _KINDS[obj["kind"]], Key(scope.key.namespace, obj["metadata"]["name"])
        written = await self.put(scope, obj)
        if written is not None:
            return written
        found = await self.find(scope, kind, key.name)
        if found is None or _differs(found, obj):
            self._written[scope.key].pop((kind.kind, key.name), None)
            found = await self.put(scope, obj)
        assert found is not None
        return found

    async def find(self, scope: ClusterScope, kind: Resource, name: str) -> Unstructured | None:
        return await find_object(scope.required_host.client, kind, Key(scope.key.namespace, name))

    async def drop(self, scope: ClusterScope, kind: Resource, name: str) -> None:
        """Of our own, by a name that somebody else's object may have, too."""
        found = await self.find(scope, kind, name)
        if found is None or not is_ours(found, scope.required_host.owner):
            return
        await drop_object(scope.required_host.client, kind, Key(found.namespace, found.name), uid=found.uid)


def selected(scope: ClusterScope, labels: Mapping[str, str]) -> Query:
    return Query(namespace=scope.key.namespace, labels=",".join(f"{name}={value}" for name, value in labels.items()))


def _differs(found: Unstructured, wanted: Json) -> bool:
    """Whether somebody changed what users most often change by hand."""
    held, spec = found.get("spec") or {}, wanted["spec"]
    if wanted["kind"] == "StatefulSet":
        return bool(held.get("replicas") != spec["replicas"] or _images(held) != _images(spec))
    return bool(held.get("type") != spec["type"] or held.get("selector") != spec["selector"])


def _images(spec: Mapping[str, Any]) -> list[str]:
    return [str(each.get("image")) for each in spec["template"]["spec"]["containers"]]
