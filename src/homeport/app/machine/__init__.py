"""Machines as operators ask about them: their console, how to log in, their size."""
