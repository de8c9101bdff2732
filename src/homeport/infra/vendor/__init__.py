"""Connections to vendors: sessions, rate limits, tasks and uploads."""
