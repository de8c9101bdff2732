"""Owner references as users write them in manifests: by name, without the UID, which is not known in advance.

Such a reference gets the UID of the object that it names; where that is not there (yet), it is left out and the user is
told: whoever owns the object says so by itself once it exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from homeport.api.meta import Object, Resource
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key
from homeport.machinery.gvk import parse_api_version
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
# Defaulting can't warn: validation of the same request reports what defaulting dropped.
_dropped: ContextVar[tuple[str, ...]] = ContextVar("omitted owner references", default=())


def register(hooks: Hooks, client: Client, kinds: Iterable[type[Object]]) -> None:
    """`client` looks owners up; it must be able to read them wherever these hooks run."""
    owners = Owners(client)
    for kind in kinds:
        hooks.add(kind, default=owners.fill, warn=owners.warn)


class Owners:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def fill(self, obj: Json, old: Json | None) -> None:
        del old
        meta = obj.get("metadata") or {}
        references = meta.get("ownerReferences") or ()
        if all(each.get("uid") for each in references):
            _dropped.set(())
            return
        kept, dropped = [], []
        for each in references:
            uid = each.get("uid") or await self._uid(each, str(meta.get("namespace") or ""))
            if uid:
                kept.append({**each, "uid": uid})
            else:
                dropped.append(f"{each.get('kind')} {each.get('name')}")
        if kept:
            meta["ownerReferences"] = kept
        else:
            meta.pop("ownerReferences", None)
        _dropped.set(tuple(dropped))

    async def _uid(self, reference: Json, namespace: str) -> str:
        version = parse_api_version(str(reference.get("apiVersion") or ""))
        kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
        if not kind or not name:
            return ""
        resource = Resource(version.group, version.version, kind, f"{kind.lower()}s")
        try:
            found = await self._client.get(resource, Key(namespace, name))
        except ApiError:
            return ""
        return str(found.uid)

    def warn(self, obj: Json, old: Json | None) -> Iterable[str]:
        del obj, old
        for each in _dropped.get():
            yield f"metadata.ownerReferences: {each} has no uid and does not exist yet: omitted"
