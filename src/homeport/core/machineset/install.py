"""The controller of MachineSets and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.capi.capi import Capi
from homeport.capi.name import REVISION
from homeport.capi.object.ownership import controller_of
from homeport.client.protocol import Key
from homeport.core.index import keys_of
from homeport.core.machineset import member
from homeport.core.machineset.reconciler import SetReconciler
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> Controller:
    reconciler = SetReconciler(capi)
    member.add_indexes(reconciler.objects)

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        return keys_of(reconciler.of_cluster(key_of(cluster)))

    def of_deployment(deployment: MachineDeployment) -> Iterable[Key]:
        return keys_of(reconciler.objects.by(member.OWNER, deployment.metadata.uid))

    controller = reconciler.controller
    controller.map(Machine, member.sets_of(reconciler.objects), predicate=machine_matters)
    controller.map(Cluster, of_cluster, predicate=_cluster_matters)
    controller.map(MachineDeployment, of_deployment, predicate=_deployment_matters)
    return manager.add(controller)


def machine_matters(old: Machine | None, new: Machine | None) -> bool:
    """Whether a change of a Machine can change what is decided or said about it: most of its life can't."""
    return old is None or new is None or _matter(old) != _matter(new)


def _matter(machine: Machine) -> Any:
    meta, status = machine.metadata, machine.status
    said = [(c["type"], c["status"], c.get("reason"), c.get("message")) for c in status.conditions]
    return (
        meta.labels,
        meta.annotations,
        meta.deletion_timestamp,
        controller_of(machine),
        machine.spec,
        status.node_ref,
        said,
    )


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """It came or went, was paused or resumed, or something changed that preflight checks go by."""
    return old is None or new is None or _cluster(old) != _cluster(new)


def _cluster(cluster: Cluster) -> Any:
    spec = cluster.spec
    return (bool(spec.paused), spec.control_plane_ref, spec.topology.version, cluster.metadata.annotations)


def _deployment_matters(old: MachineDeployment | None, new: MachineDeployment | None) -> bool:
    """What remediation goes by: which revision is current, and how many may be replaced at a time."""
    return old is None or new is None or _deployment(old) != _deployment(new)


def _deployment(deployment: MachineDeployment) -> Any:
    spec = deployment.spec
    return (deployment.metadata.annotations.get(REVISION), spec.remediation.max_in_flight, spec.replicas)
