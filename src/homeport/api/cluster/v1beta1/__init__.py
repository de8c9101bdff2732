"""Kinds of cluster.x-k8s.io, version v1beta1: deprecated, converted to v1beta2."""

from __future__ import annotations

from homeport.api.cluster.v1beta1.cluster import Cluster
from homeport.api.cluster.v1beta1.clusterclass import ClusterClass
from homeport.api.cluster.v1beta1.machine import Machine
from homeport.api.cluster.v1beta1.machinedeployment import MachineDeployment
from homeport.api.cluster.v1beta1.machinedrainrule import MachineDrainRule
from homeport.api.cluster.v1beta1.machinehealthcheck import MachineHealthCheck
from homeport.api.cluster.v1beta1.machinepool import MachinePool
from homeport.api.cluster.v1beta1.machineset import MachineSet

__all__ = [
    "Cluster",
    "ClusterClass",
    "Machine",
    "MachineDeployment",
    "MachineDrainRule",
    "MachineHealthCheck",
    "MachinePool",
    "MachineSet",
]
