"""Machines with Talos: configured, started and asked through their own API."""
