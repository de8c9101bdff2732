"""The Pod network of a simulated cluster, and the ways into it."""
