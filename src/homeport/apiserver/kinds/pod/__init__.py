"""Pods: their spec, its defaults and rules, and their subresources."""
