"""Machines that boot: a simulated VM reads its user data as the real one would, and does what it says.

`Fleet` runs them for a hypervisor. A first control plane brings up a workload cluster: an API server in memory, with
the cluster's own certificates, reachable at the addresses of the simulated network.
"""
