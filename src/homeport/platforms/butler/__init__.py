"""Butler's API: tenant clusters as a service."""
