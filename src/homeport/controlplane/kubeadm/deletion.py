"""Deletion of a control plane: waits for the workers, then deletes all Machines at once. No quorum is needed."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachinePool
from homeport.capi.capi import Capi
from homeport.capi.name import PRE_TERMINATE_KCP_CLEANUP, Condition, Reason
from homeport.capi.unreadable import MACHINE, WORKERS, await_readable
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.controlplane.kubeadm.health import DesiredCondition
from homeport.controlplane.kubeadm.member import Members
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.kubeadm.work import Worker
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_LISTED = 5


class Deletion:
    def __init__(self, capi: Capi, client: Client, members: Members, worker: Worker) -> None:
        self._client = client
        self._members = members
        self._worker = worker
        self._informers = capi.manager.informers
        self._deployments = capi.manager.informers.get(MachineDeployment).cache
        self._pools = capi.manager.informers.get(MachinePool).cache

    async def release_without_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        """It has no Cluster, or no longer: nobody can tell which workers belong to it, but what is ours must go."""
        left = self._members.controlled(scope.kcp)
        for machine in left:
            meta = machine.metadata
            if not meta.deletion_timestamp:
                await self._client.delete(Machine, Key(meta.namespace, meta.name), uid=meta.uid)
            if PRE_TERMINATE_KCP_CLEANUP in meta.annotations:
                await self._worker.drop_hook(machine)
        if left:
            names = ", ".join(machine.metadata.name for machine in left)
            return Wait(
                Reason.WAITING_FOR_MACHINE_DELETION, f"waiting for control plane Machines to be deleted: {names}"
            )
        return await_readable(self._informers, scope.key.namespace, MACHINE)

    @property
    def phases(self) -> list[Phase[ControlPlaneScope]]:
        return [self._await_workers, self._await_readable, self._delete_machines, self._complete]

    async def _await_workers(self, scope: ControlPlaneScope) -> Wait | None:
        scope.owned = await self._members.owned(scope)
        left = self._workers(scope)
        if not left:
            return None
        shown = ", ".join(left[:_LISTED]) + (f" and {len(left) - _LISTED} more" if len(left) > _LISTED else "")
        text = f"waiting for the workers to be deleted: {shown}"
        return self._say(scope, Reason.WAITING_FOR_WORKERS_DELETION, text)

    def _workers(self, scope: ControlPlaneScope) -> list[str]:
        cluster = scope.cluster_key
        found = [
            f"{kind} {each.metadata.name}"
            for kind, cache in (("MachineDeployment", self._deployments), ("MachinePool", self._pools))
            for each in cache.list(cluster.namespace)
            if each.spec.cluster_name == cluster.name
        ]
        return found + [f"Machine {each.metadata.name}" for each in self._members.workers(cluster)]

    async def _delete_machines(self, scope: ControlPlaneScope) -> Wait | None:
        if not scope.owned:
            return None
        for owned in scope.owned:
            meta = owned.machine.metadata
            if not meta.deletion_timestamp:
                try:
                    await self._client.delete(Machine, Key(meta.namespace, meta.name), uid=meta.uid)
                except NotFound:
                    continue
            if PRE_TERMINATE_KCP_CLEANUP in meta.annotations:
                await self._worker.drop_hook(owned.machine)
        names = ", ".join(each.name for each in scope.owned)
        text = f"waiting for control plane Machines to be deleted: {names}"
        return self._say(scope, Reason.WAITING_FOR_MACHINE_DELETION, text)

    async def _await_readable(self, scope: ControlPlaneScope) -> Wait | None:
        unreadable = await_readable(self._informers, scope.key.namespace, *WORKERS)
        if unreadable is not None:
            scope.findings.deleting = DesiredCondition(
                Condition.DELETING, "True", unreadable.reason, unreadable.message
            )
        return unreadable

    async def _complete(self, scope: ControlPlaneScope) -> Wait | None:
        self._say(scope, Reason.DELETION_COMPLETED, "")
        return None

    def _say(self, scope: ControlPlaneScope, reason: str, message: str) -> Wait:
        scope.findings.deleting = DesiredCondition(Condition.DELETING, "True", reason, message)
        return Wait(reason, message)
