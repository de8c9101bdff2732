"""Hosted control planes in simulation: Pods of the plane that stand in for kube-apiserver, etcd, k0s and their like.

Each reads the flags and files that the real program would read, refuses what that would refuse, and listens at its
Pod's address. The cluster behind it is the one that simulated machines run; it belongs to its datastore and outlives
its Pods.
"""
