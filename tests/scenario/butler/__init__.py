"""Butler in simulation and virtual time."""
