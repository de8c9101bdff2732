"""The kubeadm bootstrap provider: the user data with which kubeadm makes a node of it."""
