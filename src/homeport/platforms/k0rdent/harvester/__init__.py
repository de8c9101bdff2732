"""The built-in cluster templates for Harvester: hosted and standalone control planes with k0s."""
