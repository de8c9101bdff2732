"""API v4: one module per namespace, over one envelope."""
