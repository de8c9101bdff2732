"""Simulated infrastructure: honest peers of the real thing, spoken to over the wire like it.

Nothing here imports a provider. Each simulator is a `World` (plain state), a wire that speaks as the vendor does, a
clock, and faults as data.
"""
