"""The mark of a plane that has stepped back for another one: a ConfigMap. Its controllers are off while it exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.capi.definition.inventory import NAMESPACE as HOME
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Key
from homeport.move.side import CONFIG_MAP, MANAGER, NAMESPACE, Side

STANDBY = Key(HOME, "homeport-standby")


async def step_back(side: Side, target_name: str, now: str) -> None:
    """The first mark counts: it says since when."""
    mark = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": STANDBY.name, "namespace": STANDBY.namespace},
        "data": {"target": target_name, "since": now},
    }
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    for kind, body in ((NAMESPACE, home), (CONFIG_MAP, mark)):
        try:
            await side.create(body, MANAGER, kind=kind)
        except AlreadyExists:
            continue


async def step_forward(side: Side) -> None:
    """The controllers work again, if they were off."""
    try:
        await side.delete(CONFIG_MAP, STANDBY)
    except NotFound:
        return


def explain(mark: Mapping[str, Any]) -> str:
    """For users who wonder why nothing happens."""
    data = mark.get("data") or {}
    where, since = data.get("target") or "another plane", data.get("since") or "an unknown time"
    return (
        f"this plane has stepped back: its clusters were moved to {where} at {since}, and its controllers are off. "
        f"Use that plane, or move its clusters back with 'homeport move'"
    )
