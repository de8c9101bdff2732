"""Bootstrap providers: data by which a machine becomes a node."""

from __future__ import annotations

from homeport.bootstrap.install import COMPONENT, install, register

__all__ = ["COMPONENT", "install", "register"]
