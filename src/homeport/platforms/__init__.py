"""Platforms: APIs for users on top of Cluster API."""
