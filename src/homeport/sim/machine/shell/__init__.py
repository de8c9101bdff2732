"""The shell and the programs of a simulated machine."""
