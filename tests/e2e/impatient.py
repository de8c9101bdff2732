"""A plugin for tests: credentials that are rejected for a few seconds count as dead, not only after minutes."""

from __future__ import annotations

from homeport.app.kubernetes import manager as replica
from homeport.runtime.manager import Manager


def install(manager: Manager) -> None:
    del manager
    replica.DEAD_SECONDS = 3.0
