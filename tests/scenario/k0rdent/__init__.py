"""Clusters from templates on simulated infrastructure."""
