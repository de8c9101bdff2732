"""Objects go into a workload cluster. Nothing is ever deleted there, and nothing of others is overwritten but fields
that a Reconcile set names itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from homeport.api.meta import Resource
from homeport.client.errors import AlreadyExists, ApiError, BadRequest, NotFound, Timeout, Unauthorized, Unavailable
from homeport.client.protocol import Client, Write
from homeport.client.rest import RestClient
from homeport.core.clusterresourceset.manifest import Json, described
from homeport.core.clusterresourceset.plan import RECONCILE
from homeport.machinery.gvk import parse_api_version

WRITE = Write(field_manager="homeport-clusterresourceset")
_LONGEST = 400  # characters of what an API server says; some repeat the whole object


class Failure(NamedTuple):
    """An object that is not there as it should be. `lost`: the cluster does not answer, no use to go on."""

    what: str
    why: str
    lost: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class RestMapper:
    """Which kinds a cluster serves, asked as needed. Made for one loop: definitions come and go."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._groups: dict[str, Mapping[str, Resource]] = {}

    async def find(self, api_version: str, kind: str) -> Resource:
        """Raises NotFound."""
        if kind not in self._groups.get(api_version, {}):
            self._groups[api_version] = await self._ask(api_version)
        found = self._groups[api_version].get(kind)
        if found is None:
            raise NotFound(f"the cluster serves no {kind} of {api_version}{await self._advice(api_version)}")
        return found

    async def _ask(self, api_version: str) -> dict[str, Resource]:
        group, version = parse_api_version(api_version)
        listed = await self._get(f"/apis/{group}/{version}" if group else f"/api/{version}")
        return {
            each["kind"]: Resource(group, version, each["kind"], each["name"], bool(each.get("namespaced")))
            for each in listed.get("resources") or ()
            if "/" not in each["name"]
        }

    async def _advice(self, api_version: str) -> str:
        """What to do about it: manifests grow old, and definitions come late."""
        group = parse_api_version(api_version).group
        listed = await self._get(f"/apis/{group}") if group else {}
        versions = [each["groupVersion"] for each in listed.get("versions") or ()]
        if versions and api_version not in versions:
            return f", but it serves {', '.join(versions)}: use that version in the manifest"
        return ": install its CustomResourceDefinition first" if group else ""

    async def _get(self, path: str) -> Json:
        """Nothing, where nothing is served."""
        if not isinstance(self._client, RestClient):
            raise BadRequest("the kinds that the cluster serves can't be read through this connection")
        answer = await self._client.raw("GET", path)
        if answer.status == 404:
            return {}
        answer.check(f"GET {path}")
        found: Json = answer.json()
        return found


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
