"""Types of addons.cluster.x-k8s.io."""
