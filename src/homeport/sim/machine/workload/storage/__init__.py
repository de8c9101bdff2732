"""Volumes of a simulated cluster."""
