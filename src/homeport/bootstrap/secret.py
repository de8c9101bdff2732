"""The Secret with the bootstrap data: what the contract promises to infrastructure providers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from homeport.api.meta import Object, Unstructured
from homeport.bootstrap.token import SECRET, BadToken, Token
from homeport.capi.name import CLUSTER_NAME_LABEL, SECRET_TYPE, SECRET_VALUE
from homeport.capi.object.ownership import AnyObject, OwnedElsewhere, controller_of, owner_patch, owner_reference
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, MergePatch, Write

_FORMAT = "format"
# The token stands inside the data, too; here it is found again without taking them apart.
_TOKEN = "bootstrap-token"  # noqa: S105

Json = dict[str, Any]


async def store_data(
    client: Client,
    config: Object,
    cluster: str,
    text: str,
    token: Token | None,
    write: Write,
    *,
    form: str = "",
    labels: Mapping[str, str] = MappingProxyType({}),
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Creates the Secret, or puts new data into the one that is there. `form`: the format, cloud-config if empty.

    Raises OwnedElsewhere.
    """
    key = Key(config.metadata.namespace, config.metadata.name)
    owner = owner_reference(config, controller=True)
    encoded = _encoded(text, form, token)
    labels = {**labels, CLUSTER_NAME_LABEL: cluster}
    metadata: Json = {"name": key.name, "namespace": key.namespace, "labels": labels, "ownerReferences": [owner]}
    if annotations:
        metadata["annotations"] = dict(annotations)
    secret = {"apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "metadata": metadata, "data": encoded}
    try:
        await client.create(secret, write, kind=SECRET)
    except AlreadyExists:
        found = await client.get(SECRET, key)
        patch = owner_patch(found, owner, labels=labels) or {"metadata": {"uid": found.uid}}
        await client.patch(SECRET, key, MergePatch({**patch, "data": encoded}), write)


def _encoded(text: str, form: str, token: Token | None) -> dict[str, str]:
    data = {SECRET_VALUE: text, _FORMAT: form or "cloud-config"}
    if token is not None:
        data[_TOKEN] = token.text
    return {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}


def token_of(secret: Unstructured) -> Token | None:
    """The token that we made for these data."""
    text = (secret.get("data") or {}).get(_TOKEN)
    if not text:
        return None
    try:
        return Token.parse(base64.b64decode(text).decode())
    except (ValueError, BadToken):
        return None


def refuse_foreign(config: Object, secret: AnyObject) -> None:
    """Raises OwnedElsewhere when somebody else's Secret has the name that we need."""
    owner = controller_of(secret)
    if owner is not None and owner["kind"] != type(config).__resource__.kind:
        raise OwnedElsewhere(
            f"Secret {config.metadata.name!r} is controlled by {owner['kind']} {owner['name']!r}, but the bootstrap "
            "data needs a Secret of that name: delete or rename it"
        )
