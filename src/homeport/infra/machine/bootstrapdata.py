"""The user data of a machine, from the bootstrap data Secret of its Machine."""

from __future__ import annotations

import base64

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.infra.error import Unreachable

SECRET = Resource("", "v1", "Secret", "secrets")


async def read_user_data(client: Client, machine: Machine) -> tuple[bytes, str]:
    """The data and its format."""
    name = machine.spec.bootstrap.data_secret_name or ""
    try:
        secret = await client.get(SECRET, Key(machine.metadata.namespace, name))
    except NotFound:
        raise Unreachable(f"bootstrap data Secret {name} of Machine {machine.metadata.name} does not exist") from None
    data = secret.get("data") or {}
    return base64.b64decode(data.get("value", "")), base64.b64decode(data.get("format", "")).decode()
