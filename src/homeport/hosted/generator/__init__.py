"""KubeconfigGenerator: kubeconfigs of further users of hosted control planes."""
