"""What wakes a Machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineDrainRule, MachineSet
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.name import DEPLOYMENT_NAME_LABEL, REVISION
from homeport.capi.shard import cluster_shard
from homeport.client.protocol import Key
from homeport.core.index import PROVIDER_ID, ensure_index, keys_of
from homeport.core.machine.node import Propagation
from homeport.core.machine.reconciler import MachineReconciler
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi, *, also: Propagation | None = None) -> Controller:
    reconciler = MachineReconciler(capi, also=also)
    controller = reconciler.controller
    machines = manager.informers.get(Machine).cache
    ensure_index(machines, PROVIDER_ID, lambda m: (m.spec.provider_id,) if m.spec.provider_id else ())

    def of_cluster(cluster: Key) -> list[Key]:
        return keys_of(reconciler.of_cluster(cluster))

    def of_set(machine_set: MachineSet) -> Iterable[Key]:
        siblings = reconciler.of_cluster(_cluster_of(machine_set))
        return [key_of(m) for m in siblings if _owned_by(m, machine_set.metadata.uid)]

    def of_deployment(deployment: MachineDeployment) -> Iterable[Key]:
        siblings = reconciler.of_cluster(_cluster_of(deployment))
        return [key_of(m) for m in siblings if m.metadata.labels.get(DEPLOYMENT_NAME_LABEL) == deployment.metadata.name]

    def going(rule: MachineDrainRule) -> Iterable[Key]:
        return [key_of(m) for m in machines.list(rule.metadata.namespace) if m.metadata.deletion_timestamp]

    controller.map(Cluster, lambda cluster: of_cluster(key_of(cluster)), predicate=_cluster_news)
    controller.map(MachineSet, of_set, predicate=_template_news)
    controller.map(MachineDeployment, of_deployment, predicate=_template_news)
    controller.map(MachineDrainRule, going)
    manager.job(reconciler.removal.followers.run)
    manager.weigh(lambda: (cluster_shard(_cluster_of(machine)) for machine in machines))
    _follow_nodes(capi, controller, machines, of_cluster)
    return manager.add(controller)


def _follow_nodes(capi: Capi, controller: Controller, machines: Any, of_cluster: Any) -> None:
    """A Node's changes wake the Machine with its provider ID; coming and going of connections wake all."""

    def connection_changed(cluster: Key) -> None:
        for key in of_cluster(cluster):
            controller.wake(key)

    def node_changed(cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        if old is not None and new is not None and _relevant_fields(old) == _relevant_fields(new):
            return  # a heartbeat
        ids = {(node.get("spec") or {}).get("providerID") for node in (old, new) if node is not None}
        for machine in [m for each in ids if each for m in machines.by(PROVIDER_ID, each)]:
            if _cluster_of(machine) == cluster:
                controller.wake(key_of(machine))

    capi.remotes.follow(connection_changed)
    capi.remotes.on_node(node_changed)


def _relevant_fields(node: Unstructured) -> tuple[Any, ...]:
    """What a Machine asks of its Node."""
    meta, spec, status = node.metadata, node.get("spec") or {}, node.get("status") or {}
    conditions = [(c.get("type"), c.get("status"), c.get("message")) for c in status.get("conditions") or ()]
    return (
        meta.get("labels"),
        meta.get("annotations"),
        meta.get("deletionTimestamp"),
        spec,
        conditions,
        status.get("nodeInfo"),
        status.get("volumesAttached"),
    )


def _cluster_of(obj: Any) -> Key:
    return Key(obj.metadata.namespace, obj.spec.cluster_name)


def _owned_by(machine: Machine, uid: str) -> bool:
    return any(ref.uid == uid for ref in machine.metadata.owner_references)


def _cluster_news(old: Cluster | None, new: Cluster | None) -> bool:
    """Of all that happens to a Cluster, what its Machines act on."""
    return old is None or new is None or _cluster_gist(old) != _cluster_gist(new)


def _cluster_gist(cluster: Cluster) -> tuple[Any, ...]:
    meta, state = cluster.metadata, cluster.status.initialization
    return (
        meta.uid,
        meta.deletion_timestamp,
        cluster.spec.paused,
        cluster.spec.control_plane_ref,
        state.infrastructure_provisioned,
        state.control_plane_initialized,
    )


def _template_news(old: Any, new: Any) -> bool:
    """Their counts change with every Machine of theirs; only the template and its revision matter here."""
    return old is not None and new is not None and _template_gist(old) != _template_gist(new)


def _template_gist(obj: MachineSet | MachineDeployment) -> tuple[Any, ...]:
    after = obj.spec.rollout.after if isinstance(obj, MachineDeployment) else None
    return (obj.spec.template.spec, after, obj.metadata.annotations.get(REVISION))
