"""Keeps a set of RBAC objects: writes what differs, deletes what is no longer wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeport.api.meta import Resource
from homeport.client.absence import drop_object
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, Query, Write
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.platforms.butler.team.binding import identity, same
from homeport.platforms.butler.team.role import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING

KINDS: Mapping[str, Resource] = {each.kind: each for each in (CLUSTER_ROLE, ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING)}
_WRITE = Write(field_manager=FIELD_MANAGER)


async def keep(
    client: Client, wanted: Sequence[Mapping[str, Any]], labels: str, kinds: Iterable[Resource] = KINDS.values()
) -> int:
    """`labels` selects all objects that belong to the set. Gives the number of writes."""
    there = {}
    for kind in kinds:
        for each in (await client.list(kind, Query(labels=labels))).items:
            there[kind.kind, each.namespace, each.name] = each
    writes, failure = 0, None
    for body in wanted:
        held = there.pop(identity(body), None)
        if held is None or not same(held, body):
            try:
                await _put(client, body, held)
            except ApiError as error:
                failure = failure or (None if _has_no_namespace(error) else error)
            writes += 1
    # Access is taken away only after everything else stands, and it is taken away by name: nothing else is touched.
    # What could not be given is no reason to leave access to somebody who lost it.
    for (kind_name, namespace, name), each in there.items():
        await _delete(client, KINDS[kind_name], Key(namespace, name), each.uid)
        writes += 1
    if failure is not None:
        raise failure
    return writes


def _has_no_namespace(error: ApiError) -> bool:
    """Nothing in a namespace that is gone, or on its way, needs access."""
    return isinstance(error, NotFound) or any(each.reason == "NamespaceTerminating" for each in error.causes)


async def _put(client: Client, body: Mapping[str, Any], held: Mapping[str, Any] | None) -> None:
    kind = KINDS[str(body["kind"])]
    if held is not None and held.get("roleRef") != body.get("roleRef"):  # a binding's role is immutable
        meta = held["metadata"]
        await _delete(client, kind, Key(meta.get("namespace", ""), meta["name"]), meta["uid"])
    await client.apply(body, _WRITE, kind=kind, force=True)


async def _delete(client: Client, kind: Resource, key: Key, uid: str) -> None:
    await drop_object(client, kind, key, uid=uid)
