"""The cloud controller manager of workload clusters on Harvester and KubeVirt."""
