"""Objects by which users of upstream's releases find the plane: Pods, Deployments, clusterctl's inventory."""
