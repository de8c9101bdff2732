"""What controllers of k0s do inside their cluster: etcd members, upgrades, configuration, manifests and charts."""
