"""TenantCluster: a cluster as a service. Everything that it is made of are objects of Cluster API and ClusterAddons."""
