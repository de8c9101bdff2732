"""Types of cluster.x-k8s.io."""
