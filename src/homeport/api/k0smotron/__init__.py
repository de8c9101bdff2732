"""k0smotron.io, and the kinds of controlplane.cluster.x-k8s.io that run k0s control planes as Pods."""
