"""Trees that follow the changes of their objects."""
