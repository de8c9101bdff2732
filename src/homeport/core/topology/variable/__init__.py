"""Variables of a ClusterClass and of the Clusters that use it."""
