"""InfraClusters of every provider: the reconciler, failure domains, credentials and the virtual address."""
