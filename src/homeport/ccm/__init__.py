"""The cloud controller manager: what a workload cluster has to know of the infrastructure that its Nodes run on.

It runs in the workload cluster (`homeport ccm`) with a `Cloud` of some provider. There is no route loop: Pod networks
of the infrastructures that Homeport knows need no routes from outside.
"""
