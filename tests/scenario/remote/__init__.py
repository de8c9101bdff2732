"""Machines that exist already, reached over SSH."""
