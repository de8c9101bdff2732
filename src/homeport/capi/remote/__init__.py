"""Workload clusters: their keys, kubeconfigs, connections, Nodes and etcd members."""
