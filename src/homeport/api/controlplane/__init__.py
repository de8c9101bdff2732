"""Types of controlplane.cluster.x-k8s.io."""
