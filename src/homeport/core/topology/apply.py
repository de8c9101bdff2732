"""Intents are applied where they are not what is there, and only then."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from homeport.api.meta import Object, Resource, Unstructured
from homeport.capi.name import CONVERSION_DATA, TOPOLOGY_DRY_RUN
from homeport.capi.object.ownership import owners, rival_of
from homeport.capi.object.paused import annotations_of
from homeport.client.absence import find_object
from homeport.client.errors import Conflict
from homeport.client.protocol import Client, Key, Write
from homeport.core.topology.desired.blueprint import TopologyError
from homeport.runtime.cache import key_of, labels_of, uid_of

MANAGER = "capi-topology"
_LIMIT = 50_000  # objects that are remembered; more are just applied once more

Json = dict[str, Any]
AnyObject = Object | Unstructured
State = tuple[str, int, bytes]


@dataclass(frozen=True, slots=True)
class AppliedObject:
    """An object that has its desired state; `new`: it was just created, `changed`: something was written."""

    name: str
    new: bool = False
    changed: bool = False


class Applier:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._write = Write(field_manager=MANAGER)
        # By object: the state in which an intent had nothing to change. Statuses are not part of it.
        self._settled: dict[tuple[Resource, Key], tuple[State, bytes]] = {}

    async def hold(self, resource: Resource, intent: Json, current: AnyObject | None) -> AppliedObject:
        """Server-side apply, so that fields of others stay. `current` None: it is made, or taken as it is."""
        name = str(intent["metadata"]["name"])
        if current is not None and self.is_settled(resource, intent, current):
            return AppliedObject(name)
        await self._refuse_rival(resource, intent, current)
        made = await self._client.apply(_for(intent, current), self._write, kind=resource, force=True)
        if made.metadata.get("deletionTimestamp") and current is None:
            raise Conflict(f"{resource.kind} {name} is still being deleted: it is created again afterwards")
        self._settle(resource, intent, made)
        changed = current is None or state_of(current) != state_of(made)
        return AppliedObject(name, new=current is None, changed=changed)

    async def _refuse_rival(self, resource: Resource, intent: Json, current: AnyObject | None) -> None:
        """Names may come from a naming template, which two Clusters can share."""
        wanted = next(iter(intent["metadata"].get("ownerReferences") or ()), None)
        if wanted is None:
            return
        key = Key(str(intent["metadata"].get("namespace") or ""), str(intent["metadata"]["name"]))
        if current is None:
            current = await find_object(self._client, resource, key)
            if current is None:
                return
        rival = rival_of(current, wanted)
        if rival is not None:
            raise TopologyError(
                f"{resource.kind} {key.name} belongs to {rival['kind']} {rival['name']}, so {wanted['kind']} "
                f"{wanted['name']} can't use that name: use a naming template in the ClusterClass that contains "
                "the name of the Cluster"
            )

    async def hold_template(
        self, resource: Resource, intent: Json, current: Unstructured | None, successor: str
    ) -> AppliedObject:
        """Templates are never changed, since machines were made from them: where the spec would have to be another,
        one with the name `successor` takes its place."""
        if current is None or self.is_settled(resource, intent, current):
            return await self.hold(resource, intent, current)
        tried = await self._try(resource, _for(intent, current))
        if not await self._is_other(resource, tried, current):
            if _metadata(tried) != _metadata(current):
                return await self.hold(resource, intent, current)
            self._settle(resource, intent, current)
            return AppliedObject(str(intent["metadata"]["name"]))
        renamed = {**intent, "metadata": {**intent["metadata"], "name": successor}}
        return await self.hold(resource, renamed, None)

    async def _is_other(self, resource: Resource, tried: Unstructured, current: Unstructured) -> bool:
        """Compares by a dry run: fields that the server would default do not count as differences."""
        if _spec(tried) == _spec(current):
            return False
        # Objects stored before a default existed get it with the next write.
        again = await self._try(resource, _for(_bare(current), current))
        return bool(_spec(tried) != _spec(again))

    async def _try(self, resource: Resource, body: Json) -> Unstructured:
        # Admission refuses changes of templates, unless it is told that nobody means it.
        meta = body["metadata"]
        marked = {**meta, "annotations": {**(meta.get("annotations") or {}), TOPOLOGY_DRY_RUN: ""}}
        write = Write(field_manager=MANAGER, dry_run=True)
        return await self._client.apply({**body, "metadata": marked}, write, kind=resource, force=True)

    async def leave_replicas(self, resource: Resource, key: Key) -> None:
        """What an intent no longer mentions is removed, if nobody else has it: so that the number of replicas stays as
        it is, it gets another owner first. An autoscaler takes it from there."""
        live = await self._client.get(resource, key)
        ours = next((e for e in live.metadata.get("managedFields") or () if _is_ours(e)), None)
        if ours is None or "f:replicas" not in ((ours.get("fieldsV1") or {}).get("f:spec") or {}):
            return
        kept = {"name": key.name, "namespace": key.namespace, "uid": live.uid}
        body = {**resource.type_meta, "metadata": kept}
        replicas = {"spec": {"replicas": live["spec"].get("replicas")}}
        await self._client.apply({**body, **replicas}, Write(field_manager=f"{MANAGER}-replicas"), kind=resource)

    # -- what is known to be settled -----------------------------------------------------------------------------

    def is_settled(self, resource: Resource, intent: Json, current: AnyObject) -> bool:
        return self._settled.get((resource, key_of(current))) == (_state_for(intent, current), digest(intent))

    def _settle(self, resource: Resource, intent: Json, made: AnyObject) -> None:
        if len(self._settled) >= _LIMIT:
            self._settled.clear()
        self._settled[resource, key_of(made)] = (_state_for(intent, made), digest(intent))

    def forget(self, resource: Resource, key: Key) -> None:
        self._settled.pop((resource, key), None)


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "") == (MANAGER, "Apply", "")


def _for(intent: Json, current: AnyObject | None) -> Json:
    """With the UID of what is there: if that has gone meanwhile, it must not be made again by accident."""
    if current is None:
        return intent
    return {**intent, "metadata": {**intent["metadata"], "uid": uid_of(current)}}


def _bare(obj: Unstructured) -> Json:
    meta = obj.metadata
    kept = {key: meta[key] for key in ("name", "namespace", "labels", "annotations", "ownerReferences") if key in meta}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept, "spec": obj.get("spec") or {}}


def _spec(obj: Mapping[str, Any]) -> Any:
    return obj.get("spec") or {}


def digest(value: object) -> bytes:
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _state_for(intent: Json, obj: AnyObject) -> State:
    """As far as the intent is concerned: labels and annotations of others are not."""
    meta, labels, annotations = intent["metadata"], labels_of(obj), annotations_of(obj)
    uids = {each["uid"] for each in meta.get("ownerReferences") or ()}
    named = [
        {key: labels.get(key) for key in meta.get("labels") or ()},
        {key: annotations.get(key) for key in meta.get("annotations") or ()},
        [each for each in owners(obj) if each["uid"] in uids],
    ]
    return uid_of(obj), state_of(obj)[1], digest(named)


def state_of(obj: AnyObject) -> State:
    """All but the status."""
    generation = int(obj.metadata.get("generation") or 0) if isinstance(obj, Unstructured) else obj.metadata.generation
    return uid_of(obj), generation, _metadata(obj)


def _metadata(obj: AnyObject) -> bytes:
    """Without what is only there for another version of the kind: it changes with the status."""
    kept = {key: value for key, value in annotations_of(obj).items() if key not in (TOPOLOGY_DRY_RUN, CONVERSION_DATA)}
    return digest([labels_of(obj), kept, owners(obj)])
