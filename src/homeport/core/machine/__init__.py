"""Machine: one host of a cluster, from its bootstrap data to its Node and back."""

from __future__ import annotations

from homeport.core.machine.admission import register
from homeport.core.machine.install import install

__all__ = ["install", "register"]
