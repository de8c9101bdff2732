"""Cluster API with simulated machines: an infrastructure provider that follows the contract, and a place to run it."""
