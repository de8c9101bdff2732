"""What `helm install kcm` does elsewhere: values for the plane go to Management kcm, which becomes Ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from homeport.api.k0rdent.v1beta1 import Management
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.machinery import condition
from homeport.platforms.k0rdent.name import MANAGEMENT

KEY = Key("", MANAGEMENT)


class SetupError(Exception):
    """The plane is not what was asked for; the text says why and what to do."""


async def set_up(client: Client, values: Mapping[str, Any], timeout_seconds: float) -> Management:
    """Management kcm, once it is Ready. May be repeated: values are merged. Raises SetupError."""
    body = MergePatch({"spec": {"core": {"kcm": {"config": dict(values)}}}} if values else {})
    try:
        made: Management = await client.patch(Management, KEY, body)
    except NotFound:
        raise SetupError(
            "Management kcm does not exist: start the plane without --without k0rdent, or create it"
        ) from None
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _ready(client, made.metadata.generation)
    except TimeoutError:
        held = condition.find((await client.get(Management, KEY)).status.conditions, "Ready") or {}
        why = held.get("message") or "it has not reported yet"
        raise SetupError(f"Management kcm is not Ready after {timeout_seconds:g} s: {why}") from None


async def _ready(client: Client, generation: int) -> Management:
    query = Query(fields=f"metadata.name={MANAGEMENT}")
    while True:
        async with client.watch(Management, query, initial_events=True) as events:
            async for event in events:
                if event.type in ("BOOKMARK", "DELETED"):
                    continue
                found = condition.find(event.object.status.conditions, "Ready") or {}
                if found.get("status") == "True" and int(found.get("observedGeneration") or 0) >= generation:
                    return event.object
