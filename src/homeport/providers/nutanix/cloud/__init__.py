"""The cloud controller manager of workload clusters on Nutanix."""
