"""Files of a config, with what is kept in Secrets and ConfigMaps filled in."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from homeport.api.k0s.v1beta2 import ContentSource
from homeport.api.k0s.v1beta2 import File as FileSpec
from homeport.api.meta import Resource, Unstructured
from homeport.bootstrap.kubeadm.source import MissingSource
from homeport.bootstrap.kubeadm.userdata import File
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key

SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


class Contents:
    """Secrets and ConfigMaps of one namespace; each is read once."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._known: dict[tuple[str, str], Unstructured] = {}

    async def files(self, given: Sequence[FileSpec]) -> tuple[File, ...]:
        """Raises MissingSource."""
        return tuple([await self._file(each, f"spec.files[{number}]") for number, each in enumerate(given)])

    async def text(self, source: ContentSource, field: str) -> str:
        return (await self._value(source, field)).decode("utf-8", "replace")

    async def _file(self, given: FileSpec, field: str) -> File:
        if given.content_from is None:
            return File(given.path, given.content, permissions=given.permissions)
        raw = await self._value(given.content_from, f"{field}.contentFrom")
        try:
            return File(given.path, raw.decode(), permissions=given.permissions)
        except UnicodeDecodeError:  # user data is text: other bytes are sent as base64
            return File(given.path, base64.b64encode(raw).decode(), permissions=given.permissions, encoding="b64")

    async def _value(self, source: ContentSource, field: str) -> bytes:
        ref = source.secret_ref or source.config_map_ref
        if ref is None:
            raise MissingSource(f"{field} names neither a Secret nor a ConfigMap: set secretRef or configMapRef")
        kind = SECRET if source.secret_ref is not None else CONFIG_MAP
        found = await self._read(kind, ref.name, field)
        data, binary = found.get("data") or {}, found.get("binaryData") or {}
        if kind is CONFIG_MAP and ref.key in data:
            return str(data[ref.key]).encode()
        encoded = data.get(ref.key) if kind is SECRET else binary.get(ref.key)
        if encoded is None:
            text = f"{field} refers to key {ref.key!r} of {kind.kind} {ref.name!r}, which does not exist: add the key"
            raise MissingSource(text)
        return base64.b64decode(encoded)

    async def _read(self, kind: Resource, name: str, field: str) -> Unstructured:
        found = self._known.get((kind.kind, name))
        if found is None:
            try:
                found = await self._client.get(kind, Key(self._namespace, name))
            except NotFound:
                text = f"{field} refers to {kind.kind} {name!r}, which does not exist: create it"
                raise MissingSource(text) from None
            self._known[kind.kind, name] = found
        return found
