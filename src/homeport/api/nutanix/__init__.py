"""infrastructure.cluster.x-k8s.io: the kinds of the Nutanix provider."""
