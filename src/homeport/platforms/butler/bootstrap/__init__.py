"""ClusterBootstrap: a management cluster with Talos, from nothing."""
