"""Logs, metrics and traces of controllers, and explanations for people."""
