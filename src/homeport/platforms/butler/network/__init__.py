"""Addresses: NetworkPools, and IPAllocations that get parts of them. One allocator, and never two owners."""
