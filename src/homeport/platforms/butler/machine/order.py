"""From a MachineRequest to the machine that its provider is asked for."""

from __future__ import annotations

import base64
import binascii

from homeport.api.meta import Resource
from homeport.capi.platform import ExtraDisk, Shape
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.infra.error import Misconfigured
from homeport.platforms.butler.normal.machine import MachineModel

SECRET = Resource("", "v1", "Secret", "secrets")
# Of a Secret whose reference names no key.
_KEYS = ("userData", "userdata", "user-data", "value")


def shape_of(model: MachineModel) -> Shape:
    return Shape(
        cpu=model.cpu,
        memory=f"{model.memory_mib}Mi",
        disk=f"{model.disk_gib}Gi",
        image=model.image,
        extra_disks=tuple(ExtraDisk(f"{each.size_gb}Gi", each.storage_class) for each in model.extra_disks),
        labels=dict(model.labels),
    )


async def read_user_data(client: Client, namespace: str, model: MachineModel) -> bytes:
    """b'' if there is none: systems such as Talos wait for their configuration. Raises Misconfigured."""
    ref = model.user_data_secret
    if ref is None:
        return plain(model.user_data)
    key = Key(ref.namespace or namespace, ref.name)
    try:
        found = await client.get(SECRET, key)
    except NotFound:
        raise Misconfigured(f"spec.userDataSecretRef: Secret {key} does not exist: create it") from None
    data = found.get("data") or {}
    name = ref.key or next((each for each in _KEYS if each in data), "")
    if name not in data:
        there = ", ".join(sorted(data)) or "none"
        wanted = ref.key or " or ".join(_KEYS)
        raise Misconfigured(f"spec.userDataSecretRef: Secret {key} has no key {wanted} (its keys: {there})")
    return base64.b64decode(data[name])


def plain(text: str) -> bytes:
    """User data may be written as base64, which has neither line breaks nor `#` in it."""
    if not text or "\n" in text.strip() or text.startswith("#"):
        return text.encode()
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return text.encode()
