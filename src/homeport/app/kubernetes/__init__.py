"""Controllers on a Kubernetes cluster that somebody else runs."""
