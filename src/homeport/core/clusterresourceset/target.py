"""Objects go into a workload cluster. Nothing is ever deleted there, and nothing of others is overwritten but fields
that a Reconcile set names itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from homeport.client.errors import AlreadyExists, ApiError, BadRequest, Timeout, Unauthorized, Unavailable
from homeport.client.protocol import Client, Write
from homeport.client.restmapper import RestMapper
from homeport.core.clusterresourceset.plan import RECONCILE
from homeport.machinery.manifest import Json, described

WRITE = Write(field_manager="homeport-clusterresourceset")
_LONGEST = 400  # characters of what an API server says; some repeat the whole object


class Failure(NamedTuple):
    """An object that is not there as it should be. `lost`: the cluster does not answer, no use to go on."""

    what: str
    why: str
    lost: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


async def apply_objects(client: Client, objects: Iterable[Json], strategy: str) -> list[Failure]:
    """One after the other, all of them though some fail, as long as the cluster answers."""
    served, failures = RestMapper(client), []
    for each in objects:
        try:
            await _apply(client, served, each, strategy)
        except ApiError as error:
            lost = isinstance(error, Unavailable | Timeout | Unauthorized)
            failures.append(Failure(described(each), _short(str(error)), lost))
            if lost:
                break
    return failures


async def _apply(client: Client, served: RestMapper, obj: Mapping[str, Any], strategy: str) -> None:
    kind = await served.find(obj["apiVersion"], obj["kind"])
    meta = dict(obj["metadata"])
    if kind.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    body = {**obj, "metadata": meta}
    if strategy == RECONCILE:
        if not meta.get("name"):
            raise BadRequest("metadata.name is missing: generateName can't be used with strategy Reconcile")
        await client.apply(body, WRITE, kind=kind, force=True)
    else:
        with contextlib.suppress(AlreadyExists):
            await client.create(body, WRITE, kind=kind)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
