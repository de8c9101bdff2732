"""Pods of a simulated cluster: created by workloads, scheduled, run and ended."""
