"""InfraMachines of every provider: the reconciler, and the life of a machine at its vendor."""
