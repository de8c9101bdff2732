"""MachineSet: a number of equal Machines, kept."""

from __future__ import annotations

from homeport.core.machineset.admission import register
from homeport.core.machineset.install import install

__all__ = ["install", "register"]
