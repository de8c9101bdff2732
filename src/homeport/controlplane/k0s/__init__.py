"""Control planes of k0s on Machines: made, changed and healed one at a time, and never without etcd's quorum."""
