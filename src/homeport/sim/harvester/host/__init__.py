"""The nodes of Harvester: VMs that leave one for another, maintenance, and nodes that are lost.

eviction.py   pods/eviction of launcher Pods, as KubeVirt's webhook answers it
migration.py  VirtualMachineInstanceMigrations, and those that an evacuation makes
node.py       nodes that are lost, and that come back
drain.py      maintenance mode
hosting.py    all of it together
"""
