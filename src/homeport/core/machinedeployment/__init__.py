"""MachineDeployment: replaces Machines gradually when their template changes."""

from __future__ import annotations

from homeport.core.machinedeployment.admission import register
from homeport.core.machinedeployment.install import install

__all__ = ["install", "register"]
