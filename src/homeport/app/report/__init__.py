"""How a running plane is, as data and as sentences."""
