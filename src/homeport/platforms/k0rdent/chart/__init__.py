"""Charts that the simulated internet serves under the addresses of k0rdent's own."""
