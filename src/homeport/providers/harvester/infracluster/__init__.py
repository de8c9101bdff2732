"""The infrastructure cluster, reached by its kubeconfig: connections, errors, permissions and watches."""
