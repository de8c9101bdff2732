"""Keeps what kubeadm put into the workload cluster up to date."""
