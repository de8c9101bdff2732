"""k0s on simulated machines: the program, its service, controllers and workers."""
