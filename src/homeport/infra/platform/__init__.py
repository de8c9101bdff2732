"""What platforms use of a provider: machines without a Cluster, sites and images."""
