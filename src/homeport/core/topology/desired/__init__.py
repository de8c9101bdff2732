"""The objects that a topology asks for. Pure."""
