"""Talos on a simulated machine: it takes a machine configuration that Talos would take, and no other.

Without one it waits in maintenance, where anybody may send one to port 50000; with one, its API asks for a client
certificate of the configuration's authority. A control plane waits for the bootstrap call.
"""
