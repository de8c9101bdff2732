"""The kubeadm bootstrap provider: what a machine has to be told so that kubeadm makes a node of it."""
