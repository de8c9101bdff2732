"""Secrets that the controller keeps: made when missing, renewed when stale, and otherwise left as they are."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.pki import SECRET, PkiError, secret_data
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.hosted.ownership import NameTaken, is_made_by

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")

Data = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Held:
    """What a Secret holds now."""

    name: str
    data: Data
    changed: bool  # in this very call

    @property
    def checksum(self) -> str:
        return checksum(self.data)


def checksum(data: Data) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(data.items()):
        digest.update(f"{name}\0{len(value)}\0".encode())
        digest.update(value)
    return digest.hexdigest()[:32]


class SecretKeeper:
    """Of the objects of one owner. `metadata`: labels and owner reference of what is made."""

    def __init__(self, client: Client, options: Write, namespace: str, metadata: Mapping[str, Any]) -> None:
        self._client = client
        self._options = options
        self._namespace = namespace
        self._metadata = metadata

    async def read(self, name: str) -> Data | None:
        found = await find_object(self._client, SECRET, Key(self._namespace, name))
        if found is None:
            return None
        return decoded(found)

    async def hold(
        self, name: str, stale: Callable[[Data], str], make: Callable[[Data], Data], *, type_: str = "Opaque"
    ) -> Held:
        """`stale` gives the reason why what is there can't be used, '' if it can; `make` gets what is there.

        Raises NameTaken when what is there can't be used and is somebody else's.
        """
        key = Key(self._namespace, name)
        try:
            found = await self._client.get(SECRET, key)
        except NotFound:
            try:
                found = await self._client.create(self._render(name, make({}), type_), self._options, kind=SECRET)
                return Held(name, decoded(found), True)
            except AlreadyExists:  # somebody was faster: what is there counts
                found = await self._client.get(SECRET, key)
        data = decoded(found)
        why = stale(data)
        if not why:
            return Held(name, data, False)
        self._check(found, SECRET, why)
        made = make(data)
        # Of this very state: what a user wrote meanwhile is looked at first.
        meta = {"resourceVersion": found.resource_version, "labels": dict(self._metadata.get("labels") or {})}
        patch = MergePatch({"metadata": meta, "data": encoded(made)})
        patched = await self._client.patch(SECRET, key, patch, self._options)
        return Held(name, decoded(patched), True)

    async def hold_exact(self, name: str, data: Data, *, type_: str = "Opaque") -> Held:
        """With this very content, whatever it had."""
        wanted = dict(data)
        return await self.hold(
            name,
            lambda found: "" if {k: found.get(k) for k in wanted} == wanted else "it has other content",
            lambda _: wanted,
            type_=type_,
        )

    async def hold_config(self, name: str, data: Mapping[str, str]) -> None:
        """A ConfigMap. Raises NameTaken when it is somebody else's."""
        try:
            found = await self._client.get(CONFIG_MAP, Key(self._namespace, name))
        except NotFound:
            pass
        else:
            self._check(found, CONFIG_MAP, "it has other content")
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self._namespace, **self._metadata},
            "data": dict(data),
        }
        await self._client.apply(body, self._options, kind=CONFIG_MAP, force=True)

    def _check(self, found: Unstructured, kind: Resource, why: str) -> None:
        if not is_made_by(found, self._metadata):
            key = Key(self._namespace, found.name)
            raise NameTaken(
                f"{kind.kind} {key} exists and belongs to something else, and can't be used: {why}; delete or rename it"
            )

    def _render(self, name: str, data: Data, type_: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self._namespace, **self._metadata},
            "type": type_,
            "data": encoded(data),
        }


def encoded(data: Data) -> dict[str, str]:
    return {name: base64.b64encode(value).decode() for name, value in data.items()}


def decoded(secret: Unstructured) -> dict[str, bytes]:
    """Raises PkiError for what is not base64; the API server does not let that in."""
    return {name: secret_data(secret, name) for name in secret.get("data") or {}}


__all__ = ["CONFIG_MAP", "Data", "Held", "PkiError", "SecretKeeper", "checksum", "decoded", "encoded"]
