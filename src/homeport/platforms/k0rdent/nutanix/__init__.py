"""The built-in cluster templates for Nutanix: hosted and standalone control planes with k0s."""
