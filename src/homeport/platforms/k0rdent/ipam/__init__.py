"""ClusterIPAMClaim and ClusterIPAM: addresses of clusters, as pools of Cluster API."""
