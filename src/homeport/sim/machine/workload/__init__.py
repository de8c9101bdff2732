"""Workload clusters: an API server in memory for each, etcd as state, and what kubeadm leaves in a new cluster."""
