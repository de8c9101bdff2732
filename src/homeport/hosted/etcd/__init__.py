"""etcd as a datastore of control planes: keys, users and roles."""
