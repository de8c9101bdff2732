"""The core controllers of Cluster API: Cluster, Machine, and what makes Machines in numbers."""

from __future__ import annotations

from homeport.core.install import COMPONENT, install, register

__all__ = ["COMPONENT", "install", "register"]
