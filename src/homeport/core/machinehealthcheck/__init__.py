"""MachineHealthCheck: tells unhealthy Machines, and has them replaced."""

from __future__ import annotations

from homeport.core.machinehealthcheck.admission import register
from homeport.core.machinehealthcheck.install import install

__all__ = ["install", "register"]
