"""Kinds of machines that exist already and are reached over SSH."""
