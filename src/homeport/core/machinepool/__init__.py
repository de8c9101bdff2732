"""MachinePool: stored, because other tools write it. No controller acts on it yet."""

from __future__ import annotations

from homeport.core.machinepool.admission import register

__all__ = ["register"]
