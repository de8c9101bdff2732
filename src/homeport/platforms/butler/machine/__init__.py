"""MachineRequests: single VMs on any provider."""
