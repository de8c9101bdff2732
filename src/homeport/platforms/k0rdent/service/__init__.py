"""Services of clusters: templates and their chains, the ServiceSet of each cluster, MultiClusterServices."""
