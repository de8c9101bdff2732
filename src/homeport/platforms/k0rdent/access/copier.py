"""Writes copies, and deletes them. What is not such a copy is never touched."""

from __future__ import annotations

from typing import Any

from homeport.api.k0rdent.v1beta1 import AccessManagement
from homeport.api.meta import Resource
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.platforms.k0rdent.access.copy import is_copy, is_current, render_copy
from homeport.platforms.k0rdent.access.rule import Target

Seen = tuple[Any, Any]  # the original and the copy in the cache; None: it is not there


class Copier:
    def __init__(self, client: Client, write: Write) -> None:
        self._client = client
        self._write = write
        self._known: dict[Target, tuple[str, str]] = {}  # revisions of original and copy that were found equal

    async def hold(
        self, access: AccessManagement, kind: Resource, target: Target, source: Key, seen: Seen, users: list[str]
    ) -> str:
        """What stands in the way; '' if the copy is as it should be."""
        revisions = tuple("" if each is None else str(each.metadata.resource_version) for each in seen)
        if all(revisions) and self._known.get(target) == revisions:
            return ""
        self._known.pop(target, None)
        original = await find_object(self._client, kind, source)
        if original is None:
            return f"{kind.kind} {source} does not exist: create it; reconciliation resumes automatically"
        wanted = render_copy(original, target, access)
        key = Key(target.namespace, target.name)
        held = await find_object(self._client, kind, key)
        if held is None:
            return await self._create(kind, key, wanted)
        if not is_copy(held, access):
            return f"{kind.kind} {key} exists and is not a copy: rename or delete it, or change the rule"
        if is_current(held, wanted):
            self._known[target] = (original.resource_version, held.resource_version)
            return ""
        wanted["metadata"] |= {"uid": held.uid, "resourceVersion": held.resource_version}
        return await self._replace(access, kind, target, wanted, users)

    async def _create(self, kind: Resource, key: Key, wanted: dict[str, Any]) -> str:
        try:
            await self._client.create(wanted, self._write, kind=kind)
        except AlreadyExists:
            return f"{kind.kind} {key} exists and is not a copy: rename or delete it, or change the rule"
        except (Invalid, Forbidden, NotFound) as error:  # NotFound: the namespace is gone
            return f"{kind.kind} {key}: {error}"
        return ""

    async def _replace(
        self, access: AccessManagement, kind: Resource, target: Target, wanted: dict[str, Any], users: list[str]
    ) -> str:
        """An immutable spec means that another object of the same name took the original's place."""
        key = Key(target.namespace, target.name)
        try:
            await self._client.replace(wanted, self._write, kind=kind)
        except Invalid as error:
            if users:
                return f"{kind.kind} {key} can't follow its original while ClusterDeployments use it: {error}"
            return await self.drop(access, kind, target)  # its deletion wakes us, and the new one is copied
        except (Conflict, NotFound):
            return ""  # it changed meanwhile, which wakes us
        except Forbidden as error:
            return f"{kind.kind} {key}: {error}"
        return ""

    async def drop(self, access: AccessManagement, kind: Resource, target: Target) -> str:
        key = Key(target.namespace, target.name)
        self._known.pop(target, None)
        try:
            held = await self._client.get(kind, key)
            if is_copy(held, access):
                await self._client.delete(kind, key, uid=held.uid, resource_version=held.resource_version)
        except (NotFound, Conflict):
            return ""
        except ApiError as error:
            return f"{kind.kind} {key} can't be deleted: {error}"
        return ""
