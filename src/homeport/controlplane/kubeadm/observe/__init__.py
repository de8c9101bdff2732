"""Reads the state of a control plane: its Machines, its workload cluster and its etcd."""
