"""Checks of a cluster on Harvester or KubeVirt before its first machine exists."""
