"""ClusterClass: its templates are held, its variables told, and nothing is changed that Clusters can't follow."""

from __future__ import annotations

from homeport.core.clusterclass.admission import register
from homeport.core.clusterclass.install import install

__all__ = ["install", "register"]
