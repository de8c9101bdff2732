"""Releases as Helm records them, so that Helm and Homeport continue each other's work."""
