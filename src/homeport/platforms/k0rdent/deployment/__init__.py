"""ClusterDeployment: a cluster from a template, and everything that is reported about it."""
