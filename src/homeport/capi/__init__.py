"""What every Cluster API controller shares: contracts, foreign objects, workload clusters, certificates, conditions."""
