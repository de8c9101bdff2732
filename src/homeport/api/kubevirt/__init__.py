"""infrastructure.cluster.x-k8s.io: the kinds of the KubeVirt provider, which also serves Harvester."""
