"""Clusters made from a ClusterClass."""

from __future__ import annotations
