"""Manifests of new clusters, made from choices."""
