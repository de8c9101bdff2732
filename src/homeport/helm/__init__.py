"""Helm charts on clusters: where charts come from, releases as Helm records them, and when their objects are ready."""
