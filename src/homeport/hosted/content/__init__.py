"""What a hosted control plane keeps inside the cluster that it serves. Pure: objects, in the order to apply them."""
