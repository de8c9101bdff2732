"""Machines as VirtualMachines: planned, created, observed and deleted."""
