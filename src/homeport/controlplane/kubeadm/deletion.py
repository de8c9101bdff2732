"""Deletion of a control plane: waits for the workers, then deletes all Machines at once. No quorum is needed."""

from __future__ import annotations

from homeport.capi.capi import Capi
from homeport.capi.name import Condition, Reason
from homeport.capi.unreadable import MACHINE, WORKERS, await_readable
from homeport.controlplane.condition import DesiredCondition
from homeport.controlplane.kubeadm.observe.member import Members
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.controlplane.removal import MachineRemover, WorkerWatch
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase


class Deletion:
    def __init__(self, capi: Capi, members: Members, remover: MachineRemover) -> None:
        self._members = members
        self._remover = remover
        self._workers = WorkerWatch(capi)
        self._informers = capi.manager.informers

    async def release_without_cluster(self, scope: ControlPlaneScope) -> Wait | None:
        """It has no Cluster, or no longer: nobody can tell which workers belong to it, but what is ours must go."""
        left = await self._remover.delete_all(self._members.controlled(scope.kcp))
        return left or await_readable(self._informers, scope.key.namespace, MACHINE)

    @property
    def phases(self) -> list[Phase[ControlPlaneScope]]:
        return [self._await_workers, self._await_readable, self._delete_machines, self._complete]

    async def _await_workers(self, scope: ControlPlaneScope) -> Wait | None:
        scope.owned = await self._members.owned(scope)
        return _reported(scope, self._workers.await_gone(scope.cluster_key, self._members.workers(scope.cluster_key)))

    async def _delete_machines(self, scope: ControlPlaneScope) -> Wait | None:
        return _reported(scope, await self._remover.delete_all([each.machine for each in scope.owned]))

    async def _await_readable(self, scope: ControlPlaneScope) -> Wait | None:
        return _reported(scope, await_readable(self._informers, scope.key.namespace, *WORKERS))

    async def _complete(self, scope: ControlPlaneScope) -> Wait | None:
        _report(scope, Reason.DELETION_COMPLETED, "")
        return None


def _reported(scope: ControlPlaneScope, wait: Wait | None) -> Wait | None:
    if wait is not None:
        _report(scope, wait.reason, wait.message)
    return wait


def _report(scope: ControlPlaneScope, reason: str, message: str) -> None:
    scope.findings.deleting = DesiredCondition(Condition.DELETING, "True", reason, message)
