"""ClusterResourceSet: manifests that every matching Cluster gets once it can be reached."""

from __future__ import annotations

from homeport.core.clusterresourceset.admission import register
from homeport.core.clusterresourceset.install import install

__all__ = ["install", "register"]
