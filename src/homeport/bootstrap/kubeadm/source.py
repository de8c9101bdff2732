"""Files and users of a config, with what is kept in Secrets filled in."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from homeport.api.bootstrap.v1beta2 import File as FileSpec
from homeport.api.bootstrap.v1beta2 import User as UserSpec
from homeport.api.meta import Unstructured, wire
from homeport.bootstrap.kubeadm.userdata import File, Json
from homeport.bootstrap.token import SECRET
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.machinery.gotemplate import TemplateError, render

_LARGEST_BYTES = 1 << 20  # of a rendered template


class MissingSource(Exception):
    """A Secret that a file or user refers to is not there, or not as it should be. It may come."""


class BadSource(ValueError):
    """What is given can't be used, and waiting won't help."""


class Sources:
    """Secrets of one namespace; each is read once."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._known: dict[str, Unstructured] = {}

    async def value(self, name: str, key: str, field: str) -> bytes:
        """Raises MissingSource, which names the field that asks for it."""
        secret = self._known.get(name)
        if secret is None:
            try:
                secret = await self._client.get(SECRET, Key(self._namespace, name))
            except NotFound:
                raise MissingSource(f"{field} refers to Secret {name!r}, which does not exist: create it") from None
            self._known[name] = secret
        encoded = (secret.get("data") or {}).get(key)
        if encoded is None:
            raise MissingSource(f"{field} refers to key {key!r} of Secret {name!r}, which does not exist: add the key")
        return base64.b64decode(encoded)


async def resolve_files(given: Sequence[FileSpec], sources: Sources, values: Mapping[str, Any]) -> tuple[File, ...]:
    """`values` is what templates may refer to. Raises MissingSource or BadSource."""
    return tuple([await _file(each, f"spec.files[{i}]", sources, values) for i, each in enumerate(given)])


async def _file(given: FileSpec, field: str, sources: Sources, values: Mapping[str, Any]) -> File:
    content, encoding = given.content, given.encoding
    secret = given.content_from.secret
    if secret.name:
        raw = await sources.value(secret.name, secret.key, f"{field}.contentFrom")
        content, encoding = _as_text(raw, encoding)
    if given.content_format == "Template":
        content = _rendered(content, field, given.path, values)
    return File(
        path=given.path,
        content=content,
        owner=given.owner,
        permissions=given.permissions,
        encoding=encoding,
        append=bool(given.append),
    )


def _as_text(raw: bytes, encoding: str) -> tuple[str, str]:
    """A Secret may contain any bytes, but user data is text: content that is not UTF-8 is sent as base64."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode(), "gzip+base64" if encoding == "gzip" else "base64"
    return text, encoding


def _rendered(content: str, field: str, path: str, values: Mapping[str, Any]) -> str:
    try:
        text = render(content, values, limit=_LARGEST_BYTES)
    except TemplateError as wrong:
        raise BadSource(f"{field} ({path}): the template can't be rendered: {wrong}") from wrong
    return text


def has_template(given: Sequence[FileSpec]) -> bool:
    return any(each.content_format == "Template" for each in given)


async def resolve_users(given: Sequence[UserSpec], sources: Sources) -> tuple[Json, ...]:
    return tuple([await _user(each, f"spec.users[{i}]", sources) for i, each in enumerate(given)])


async def _user(given: UserSpec, field: str, sources: Sources) -> Json:
    user: Json = wire(given)
    user.pop("passwdFrom", None)
    secret = given.passwd_from.secret
    if secret.name:
        raw = await sources.value(secret.name, secret.key, f"{field}.passwdFrom")
        try:
            user["passwd"] = raw.decode().strip()
        except UnicodeDecodeError as wrong:
            raise BadSource(f"{field}.passwdFrom: Secret {secret.name!r}, key {secret.key!r} is not text") from wrong
    return user
