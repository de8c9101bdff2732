"""k0rdent's API: clusters made from templates."""
