"""Certificates, tokens and roles of a simulated cluster."""
