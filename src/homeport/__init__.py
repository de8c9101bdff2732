"""Homeport: Kubernetes clusters on the hypervisors you own."""

__version__ = "0.1.0"
