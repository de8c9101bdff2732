"""Tells the author of a MachinePool that no machine comes of it."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import MachinePool
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

WARNING = (
    "MachinePools are stored, but no controller acts on them yet and no machine is created: use a MachineDeployment"
)


def register(hooks: Hooks) -> None:
    hooks.add(MachinePool, warn=warn)


def warn(pool: Json, old: Json | None) -> list[str]:
    # A label or a finalizer needs no repetition of it.
    return [WARNING] if old is None or pool.get("spec") != old.get("spec") else []
