"""Kinds of the cluster itself: nodes, namespaces, access rules, storage, certificates."""
