"""Deletion of a control plane: waits for the workers, then deletes all Machines at once. No quorum is needed."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi.capi import Capi
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.capi.object.ownership import is_controlled_by
from homeport.capi.unreadable import WORKERS, await_readable
from homeport.controlplane.k0s.scope import K0sPlaneScope
from homeport.controlplane.removal import MachineRemover, WorkerWatch
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase


class Deletion:
    def __init__(self, capi: Capi, remover: MachineRemover) -> None:
        self._remover = remover
        self._workers = WorkerWatch(capi)
        self._informers = capi.manager.informers
        self._machines = self._informers.get(Machine).cache

    @property
    def phases(self) -> list[Phase[K0sPlaneScope]]:
        return [self._await_workers, self._await_readable, self._delete_machines]

    async def _await_workers(self, scope: K0sPlaneScope) -> Wait | None:
        if scope.found_cluster is None:
            return None
        cluster = scope.cluster_key
        machines = [each for each in self._machines.list(cluster.namespace) if each.spec.cluster_name == cluster.name]
        workers = [each for each in machines if CONTROL_PLANE_LABEL not in each.metadata.labels]
        return _reported(scope, self._workers.await_gone(cluster, workers))

    async def _await_readable(self, scope: K0sPlaneScope) -> Wait | None:
        return _reported(scope, await_readable(self._informers, scope.key.namespace, *WORKERS))

    async def _delete_machines(self, scope: K0sPlaneScope) -> Wait | None:
        left = [each for each in self._machines.list(scope.key.namespace) if is_controlled_by(each, scope.plane)]
        return _reported(scope, await self._remover.delete_all(left))


def _reported(scope: K0sPlaneScope, wait: Wait | None) -> Wait | None:
    if wait is not None:
        scope.findings.deleting = wait.message
    return wait
