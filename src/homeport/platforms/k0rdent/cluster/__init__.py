"""Clusters of built-in templates, whatever infrastructure they run on: values, classes, topologies."""
