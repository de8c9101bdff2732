"""Workloads without nodes: Deployments, StatefulSets, ReplicaSets and Jobs come to Ready through registered runners.

For the embedded server, so that hosted control planes have somewhere to run. A real cluster has kubelets; there this is
off. Nothing is isolated: a runner runs what it is told on this machine, on loopback addresses.
"""
