"""Stands in for k0s inside workload clusters: controllers join, members leave etcd when asked, upgrades succeed."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import AlreadyExists, ApiError
from homeport.client.protocol import Client, Key, MergePatch
from homeport.runtime.definition import establish
from homeport.sim.machine.workload.k0s.definition import CONTROL_NODE, ETCD_MEMBER, PLAN, definitions

CONFIG_KIND = "K0sControllerConfig"


async def define(client: Client) -> None:
    """The kinds that k0s brings to its cluster."""
    await establish(client, *definitions())


async def announce(client: Client, name: str, version: str) -> None:
    """A controller that has started. One that is known already keeps what it reports."""
    await _create(client, CONTROL_NODE, name, {"k0sVersion": version})
    await _create(client, ETCD_MEMBER, name, _member(name, joined=True))


async def serve(client: Client) -> None:
    """Until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_each(client, ETCD_MEMBER, _leave))
        group.create_task(_each(client, PLAN, _upgrade))


async def _create(client: Client, kind: Resource, name: str, status: dict[str, Any]) -> None:
    try:
        await client.create({"metadata": {"name": name}}, kind=kind)
    except AlreadyExists:
        return
    await client.patch(kind, Key("", name), MergePatch({"status": status}), subresource="status")


def _member(name: str, *, joined: bool) -> dict[str, Any]:
    number = f"{zlib.crc32(name.encode()):x}"
    conditions = [{"type": "Joined", "status": str(joined)}]
    return {"peerAddress": name, "memberID": number, "reconcileStatus": "Success", "conditions": conditions}


async def _each(client: Client, kind: Resource, act: Callable[[Client, Unstructured], Awaitable[None]]) -> None:
    async with client.watch(kind, initial_events=True) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED"):
                with contextlib.suppress(ApiError):  # deleted meanwhile
                    await act(client, event.object)


async def _leave(client: Client, member: Unstructured) -> None:
    left = _member(member.name, joined=False)
    if (member.get("spec") or {}).get("leave") and member.get("status") != left:
        await client.patch(ETCD_MEMBER, Key("", member.name), MergePatch({"status": left}), subresource="status")


async def _upgrade(client: Client, plan: Unstructured) -> None:
    """All controllers that the plan names report its version."""
    if (plan.get("status") or {}).get("state"):
        return
    for command in plan["spec"]["commands"]:
        update = command["k0supdate"]
        for name in update["targets"]["controllers"]["discovery"]["static"]["nodes"]:
            patch = MergePatch({"status": {"k0sVersion": update["version"]}})
            await client.patch(CONTROL_NODE, Key("", name), patch, subresource="status")
    done = MergePatch({"status": {"state": "Completed"}})
    await client.patch(PLAN, Key("", plan.name), done, subresource="status")
