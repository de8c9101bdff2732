"""Talos Linux: the machine configuration of a cluster, its secrets and the credentials of its clients.

Pure functions: nothing here talks to a machine. bootstrap/talos does.
"""
