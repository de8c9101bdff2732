"""Deployments, ReplicaSets, StatefulSets and Jobs: one set of reconcilers for the plane and for simulated clusters.

They read Pods and revisions through `Owned` and write through a client. What runs the Pods is up to the caller.
"""
