"""Types of ipam.cluster.x-k8s.io."""
