"""Checks of a cluster before its first machine exists."""
