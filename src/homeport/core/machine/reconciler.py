"""Machine: takes its bootstrap configuration and infrastructure into its hands, finds its Node, and goes in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import structlog

from homeport.api.cluster.v1beta2 import (
    Cluster,
    Machine,
    MachineAddress,
    MachineDeployment,
    MachineNodeReference,
    MachineSet,
)
from homeport.api.core.v1 import NodeSystemInfo
from homeport.capi import contract, name
from homeport.capi.capi import Capi
from homeport.capi.object.joined import has_joined
from homeport.capi.object.ownership import controller_of, owner_reference, with_owner
from homeport.capi.reconciler import CapiReconciler
from homeport.client.protocol import Key, MergePatch, Write
from homeport.core.index import by_cluster
from homeport.core.machine.follow import Followers
from homeport.core.machine.node import Propagation, node_patch
from homeport.core.machine.observed import Connection
from homeport.core.machine.removal import Removal
from homeport.core.machine.scope import MachineScope
from homeport.core.machine.uptodate import outdated
from homeport.core.machine.workload import NODE
from homeport.core.related import hold_related, note_failure, observe_related
from homeport.runtime.outcome import Wait
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import Phase

log = structlog.get_logger(__name__)

MANAGER = "homeport-machine"
_TOGETHER_SECONDS = 0.5  # Pods leave a Node in groups: one look for all of them
_SET = (name.GROUP, "MachineSet")


class MachineReconciler(CapiReconciler[Machine, MachineScope]):
    controller_name = "machine"
    kind = Machine
    field_manager = MANAGER
    condition = name.Condition.READY
    finalizer = name.MACHINE_FINALIZER
    workers = 16
    own_writes_wake = False
    rests = True
    pace = Pace(1.0)

    def __init__(self, capi: Capi, *, also: Propagation | None = None, paced: bool = True) -> None:
        manager = capi.manager
        super().__init__(manager, paced=paced)
        self.capi = capi
        self._also = also
        self._machines = manager.informers.get(Machine).cache
        self._clusters = manager.informers.get(Cluster).cache
        self._sets = manager.informers.get(MachineSet).cache
        self._deployments = manager.informers.get(MachineDeployment).cache
        self.of_cluster = by_cluster(self._machines)
        followers = Followers(lambda key: self.controller.queue.add(key, after=_TOGETHER_SECONDS))
        self.removal = Removal(capi, self.of_cluster, self._write, followers)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self.removal.forget(key)

    def load(self, obj: Machine) -> MachineScope:
        return MachineScope(obj, self._clusters.get(Key(obj.metadata.namespace, obj.spec.cluster_name)))

    def cluster_of(self, scope: MachineScope) -> Cluster | None:
        return scope.seen.cluster

    def phases(self, scope: MachineScope) -> Sequence[Phase[MachineScope]]:
        hold = [self._observe, self._hold_related, self._hold_machine, self._find_node]
        if scope.deleting:
            return [*hold, self._release, self.drop_finalizer, self._end]
        return [self._await_cluster, *hold, self._sync_node, self._await_parts]

    async def _await_cluster(self, scope: MachineScope) -> Wait | None:
        if scope.seen.cluster is not None:
            return None
        # The Cluster's coming wakes us.
        return Wait("WaitingForCluster", f"Cluster {scope.object.spec.cluster_name} does not exist")

    async def _release(self, scope: MachineScope) -> Wait | None:
        scope.seen.deletion = await self.removal.run(scope)
        return scope.seen.deletion

    async def _end(self, scope: MachineScope) -> None:
        """Finalizers of others may be left, but nothing to report on."""
        scope.released = True

    # -- reading -----------------------------------------------------------------------------------------------

    async def _observe(self, scope: MachineScope) -> None:
        machine, seen = scope.object, scope.seen
        namespace = machine.metadata.namespace
        kind = Machine.__resource__
        seen.bootstrap = await observe_related(
            self.capi, machine.spec.bootstrap.config_ref, scope.key, watcher=self.controller, owner_kind=kind
        )
        seen.infrastructure = await observe_related(
            self.capi, machine.spec.infrastructure_ref, scope.key, watcher=self.controller, owner_kind=kind
        )
        owner = controller_of(machine)
        if owner is not None and owner["kind"] == "MachineSet":
            seen.machine_set = self._sets.get(Key(namespace, owner["name"]))
        if seen.machine_set is not None:
            deployment = seen.machine_set.metadata.labels.get(name.DEPLOYMENT_NAME_LABEL, "")
            seen.deployment = self._deployments.get(Key(namespace, deployment))
        remotes = self.capi.remotes
        up = remotes.get(scope.cluster_key) is not None
        why = "" if up else remotes.why(scope.cluster_key)
        key = scope.cluster_key
        seen.connection = Connection(up, why, remotes.last_probe(key), remotes.silent_since(key))

    # -- taking hold -------------------------------------------------------------------------------------------

    async def _hold_related(self, scope: MachineScope) -> None:
        machine = scope.object
        owner = owner_reference(machine, controller=True)
        without = [_SET]
        cluster = scope.seen.cluster
        if cluster is not None and cluster.spec.control_plane_ref is not None:
            ref = cluster.spec.control_plane_ref
            without.append((ref.api_group, ref.kind))
        labels = {name.CLUSTER_NAME_LABEL: machine.spec.cluster_name}
        for related in (scope.seen.bootstrap, scope.seen.infrastructure):
            await hold_related(
                self.capi,
                related,
                owner,
                scope.key,
                self._write,
                watcher=self.controller,
                labels=labels,
                without=without,
            )

    def _take_bootstrap(self, scope: MachineScope) -> None:
        machine, related = scope.object, scope.seen.bootstrap
        held = related.object
        ready = machine.spec.bootstrap.data_secret_name is not None
        if not ready and held is not None and contract.bootstrap.created(held, related.contract):
            secret = contract.bootstrap.data_secret_name(held)
            if secret:
                machine.spec.bootstrap.data_secret_name = secret
                ready = True
        if ready:
            machine.status.initialization.bootstrap_data_secret_created = True
        note_failure(machine, related)

    def _take_infrastructure(self, scope: MachineScope) -> None:
        machine, related = scope.object, scope.seen.infrastructure
        held = related.object
        note_failure(machine, related)
        if held is None:
            if related.missing and machine.status.initialization.infrastructure_provisioned and not scope.deleting:
                old = machine.status.deprecated.v1beta1
                old.failure_reason = "InvalidConfiguration"
                old.failure_message = f"{related} has been deleted after it was provisioned"
            return
        known = bool(machine.status.initialization.infrastructure_provisioned)
        provider_id = contract.infra_machine.provider_id(held)
        if related.deleting or not provider_id:
            return
        if not known and not contract.infra_machine.provisioned(held, related.contract):
            return
        machine.spec.provider_id = provider_id
        machine.status.initialization.infrastructure_provisioned = True
        addresses = contract.infra_machine.addresses(held)
        if addresses:
            machine.status.addresses = [MachineAddress(type=a["type"], address=a["address"]) for a in addresses]
        domain = contract.infra_machine.failure_domain(held, related.contract)
        if domain:
            machine.status.failure_domain = domain
            if related.contract == "v1beta1":
                machine.spec.failure_domain = domain

    async def _hold_machine(self, scope: MachineScope) -> None:
        """Everything that is to be written into metadata and spec, in one patch."""
        self._take_bootstrap(scope)
        self._take_infrastructure(scope)
        patch = machine_patch(scope.read, scope.object, scope.seen.cluster, deleting=scope.deleting)
        if patch:
            written = await self.client.patch(Machine, scope.key, MergePatch(patch), self._write)
            scope.update_metadata(written)

    # -- the Node ----------------------------------------------------------------------------------------------

    async def _find_node(self, scope: MachineScope) -> None:
        machine, seen = scope.object, scope.seen
        remote = self.capi.remotes.get(scope.cluster_key)
        if remote is None or not machine.spec.provider_id:
            return
        found = remote.nodes_of(machine.spec.provider_id)
        if len(found) > 1:
            names = ", ".join(sorted(node.name for node in found))
            seen.node_trouble = (
                f"Nodes {names} all have spec.providerID {machine.spec.provider_id}: delete the wrong ones"
            )
            return
        if not found:
            return
        seen.node = found[0]
        if machine.status.node_ref is None:
            machine.status.node_ref = MachineNodeReference(name=seen.node.name)
            self.recorder.record(machine, "SuccessfulSetNodeRef", f"its Node is {seen.node.name}")
        info = (seen.node.get("status") or {}).get("nodeInfo")
        if info:
            machine.status.node_info = msgspec.convert(info, NodeSystemInfo, strict=False)

    async def _sync_node(self, scope: MachineScope) -> None:
        node, held = scope.seen.node, scope.seen.infrastructure.object
        remote = self.capi.remotes.get(scope.cluster_key)
        if node is None or remote is None:
            return
        patch = node_patch(
            node,
            scope.object,
            interruptible=held is not None and contract.infra_machine.interruptible(held),
            outdated=outdated(scope.seen.machine_set, scope.seen.deployment),
            also=self._also,
        )
        if patch is not None:
            await remote.client.patch(NODE, Key("", node.name), MergePatch(patch), Write(field_manager=MANAGER))

    # -- waiting -----------------------------------------------------------------------------------

    async def _await_parts(self, scope: MachineScope) -> Wait | None:
        machine, seen = scope.object, scope.seen
        for related in (seen.bootstrap, seen.infrastructure):
            if related.trouble:
                return Wait("ReferenceNotUsable", related.trouble)
            if related.missing:
                return Wait(name.Reason.OBJECT_DOES_NOT_EXIST, f"{related} does not exist")
        if not machine.status.initialization.bootstrap_data_secret_created:
            return Wait(
                name.Reason.WAITING_FOR_BOOTSTRAP_DATA, f"waiting for {seen.bootstrap} to create bootstrap data"
            )
        if not machine.status.initialization.infrastructure_provisioned:
            return Wait("WaitingForInfrastructure", f"waiting for {seen.infrastructure} to be provisioned")
        if seen.node is None and not has_joined(None, machine.status.conditions):
            return Wait("WaitingForNode", seen.node_trouble or seen.connection.why or "its Node has not joined yet")
        return None


def machine_patch(stored: Machine, wanted: Machine, cluster: Cluster | None, *, deleting: bool) -> dict[str, Any]:
    """The merge patch of metadata and spec; {} when all is as it should be."""
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    if wanted.spec.bootstrap.data_secret_name != stored.spec.bootstrap.data_secret_name:
        spec["bootstrap"] = {"dataSecretName": wanted.spec.bootstrap.data_secret_name}
    if wanted.spec.provider_id != stored.spec.provider_id:
        spec["providerID"] = wanted.spec.provider_id
    if wanted.spec.failure_domain != stored.spec.failure_domain:
        spec["failureDomain"] = wanted.spec.failure_domain
    if not deleting:
        if name.MACHINE_FINALIZER not in stored.metadata.finalizers:
            metadata["finalizers"] = [*stored.metadata.finalizers, name.MACHINE_FINALIZER]
        if stored.metadata.labels.get(name.CLUSTER_NAME_LABEL) != stored.spec.cluster_name:
            metadata["labels"] = {name.CLUSTER_NAME_LABEL: stored.spec.cluster_name}
        if cluster is not None and stands_alone(stored, cluster):
            metadata["ownerReferences"] = with_owner(
                [msgspec.to_builtins(each) for each in stored.metadata.owner_references], owner_reference(cluster)
            )
    if not metadata and not spec:
        return {}
    state = {"uid": stored.metadata.uid, "resourceVersion": stored.metadata.resource_version}
    return {"metadata": {**metadata, **state}, **({"spec": spec} if spec else {})}


_MAKERS = (name.SET_NAME_LABEL, name.POOL_NAME_LABEL, name.CONTROL_PLANE_NAME_LABEL)


def stands_alone(machine: Machine, cluster: Cluster) -> bool:
    """Nobody made it but the user: then it belongs to the Cluster. Restored ones wait for their makers to come back."""
    if controller_of(machine) is not None or any(label in machine.metadata.labels for label in _MAKERS):
        return False
    return not any(
        ref.kind == "Cluster" and ref.uid == cluster.metadata.uid for ref in machine.metadata.owner_references
    )
