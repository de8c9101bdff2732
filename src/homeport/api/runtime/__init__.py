"""Types of runtime.cluster.x-k8s.io."""
