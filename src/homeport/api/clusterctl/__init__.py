"""Types of clusterctl.cluster.x-k8s.io."""
