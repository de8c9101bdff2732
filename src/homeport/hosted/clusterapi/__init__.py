"""StewardControlPlane and KamajiControlPlane: hosted control planes as Cluster API knows control planes."""
