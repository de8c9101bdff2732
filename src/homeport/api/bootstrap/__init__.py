"""Types of bootstrap.cluster.x-k8s.io."""
