"""Bootstrap providers: data by which a machine becomes a node."""

from __future__ import annotations

from homeport.bootstrap.install import install, register

__all__ = ["install", "register"]
