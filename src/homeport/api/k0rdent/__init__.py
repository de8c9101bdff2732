"""k0rdent's API."""
