"""kubeadm on a simulated machine: it reads the same configuration and fails for the same reasons."""
