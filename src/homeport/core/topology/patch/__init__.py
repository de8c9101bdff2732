"""Patches of a ClusterClass."""
