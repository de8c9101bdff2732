"""The Pods, Services and ingresses of a control plane and its storage. Pure."""
