"""What every infrastructure provider shares: the protocol, and the reconcilers of InfraCluster and InfraMachine kinds.

A provider brings types, a client of its vendor and two drivers; queues, finalizers, conditions and retries are here.
"""
