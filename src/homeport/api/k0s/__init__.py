"""Kinds of k0smotron that run k0s on machines: bootstrap.cluster.x-k8s.io and controlplane.cluster.x-k8s.io."""
