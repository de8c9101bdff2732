"""Orphaned VMs of a cluster: the plane is asked for them, and removes them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Cluster, ContractRef
from homeport.api.meta import Resource
from homeport.capi.resolution import CRD, pick, plural
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.infra.orphan.record import REQUEST, Answer, Found, Request
from homeport.infra.orphan.sweep import SILENT

WRITE = Write(field_manager="homeport-orphans")
_ANSWER_SECONDS = 60.0


class Refused(Exception):
    """It can't be done, or should not; says why and what to do."""


async def look(client: Client, key: Key) -> tuple[Found, ...]:
    return (await ask(client, await find_cluster(client, key), Request())).found


async def find_cluster(client: Client, key: Key) -> Cluster:
    cluster = await client.get(Cluster, key)
    if cluster.spec.paused:
        raise Refused(f"Cluster {key} is paused: its controllers do not answer. Unpause it first")
    return cluster


async def infra_kind_of(client: Client, cluster: Cluster) -> tuple[Resource, Key]:
    ref = cluster.spec.infrastructure_ref
    if ref is None:
        raise Refused(f"Cluster {cluster.metadata.name} has no infrastructureRef: it has no VMs")
    return await served_resource(client, ref), Key(cluster.metadata.namespace, ref.name)


async def served_resource(client: Client, ref: ContractRef) -> Resource:
    """In the version that the provider's definition has for its contract with Cluster API."""
    name = f"{plural(ref.kind)}.{ref.api_group}"
    try:
        definition = await client.get(CRD, Key("", name))
    except NotFound:
        raise Refused(f"{ref.kind} {ref.name}: CustomResourceDefinition {name} does not exist") from None
    found = pick(definition.metadata.get("labels") or {}, ref.api_group, ref.kind)
    if found is None:
        raise Refused(f"{ref.kind} {ref.name}: CustomResourceDefinition {name} has no label of a contract")
    return found.resource


async def ask(client: Client, cluster: Cluster, request: Request) -> Answer:
    kind, key = await infra_kind_of(client, cluster)
    asked = Request(f"user-{uuid.uuid4().hex}", request.remove, request.force, request.seek)
    await client.patch(kind, key, MergePatch({"metadata": {"annotations": {REQUEST: asked.render()}}}), WRITE)
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    try:
        async with asyncio.timeout(_ANSWER_SECONDS), client.watch(kind, query, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED"):
                    continue
                answer = Answer.parse(event.object.metadata.get("annotations") or {})
                if answer.request == asked.id:
                    if answer.error:
                        raise Refused(f"{kind.kind} {key}: {answer.error}")
                    return answer
    except TimeoutError:
        pass
    raise Refused(f"{kind.kind} {key}: no answer within {_ANSWER_SECONDS:g} s: check that the plane is running")


async def removable(client: Client, key: Key, names: Sequence[str], *, force: bool) -> list[Found]:
    """The orphans of these names or ids. Raises Refused for one that is not an orphan or may be in use."""
    chosen = choose(await look(client, key), names, key)
    for each in chosen:
        if each.role is not None and not force:
            raise Refused(f"VM {each.owned.name} {each.role}: adopt it, or use --force to delete it nevertheless")
        if each.kept.startswith(SILENT) and not force:
            raise Refused(f"VM {each.owned.name}: {each.kept}; use --force to delete it nevertheless")
    return chosen


async def remove(client: Client, key: Key, chosen: Sequence[Found], *, force: bool) -> None:
    request = Request(remove=tuple(each.owned.id for each in chosen), force=force)
    answer = await ask(client, await find_cluster(client, key), request)
    kept = [each for each in answer.found if each.owned.id in request.remove and not each.removing]
    if kept:
        raise Refused(f"VM {kept[0].owned.name} was kept: {kept[0].kept}")


def choose(found: Sequence[Found], names: Sequence[str], key: Key) -> list[Found]:
    chosen = []
    for name in names:
        fits = [each for each in found if name in (each.owned.name, each.owned.id)]
        if not fits:
            raise Refused(f"VM {name} is not an orphan of cluster {key.name}: see 'homeport orphans list {key.name}'")
        if len(fits) > 1:
            raise Refused(f"VM {name}: several orphans have this name: use the ID")
        chosen.append(fits[0])
    return chosen
