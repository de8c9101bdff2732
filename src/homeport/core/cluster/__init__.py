"""Cluster: the whole, from its first reference to its last finalizer."""

from __future__ import annotations

from homeport.core.cluster.admission import register
from homeport.core.cluster.install import install

__all__ = ["install", "register"]
