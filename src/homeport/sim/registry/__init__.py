"""A stand-in for the registries and chart repositories of the internet, read-only, inside the simulated network."""
