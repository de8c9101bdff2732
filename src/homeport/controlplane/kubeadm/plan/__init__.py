"""Decides the next step of a control plane. Pure."""
