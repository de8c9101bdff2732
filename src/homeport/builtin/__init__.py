"""Loops that make the embedded API server behave as a cluster. A real one has its own; there these stay off."""
