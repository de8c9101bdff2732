"""CustomResourceDefinitions of Cluster API's kinds, their columns, and clusterctl's inventory."""
