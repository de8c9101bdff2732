"""The provider for Harvester, and for KubeVirt without it: machines are VirtualMachines of another Kubernetes API."""
