"""Deployments, ReplicaSets, StatefulSets and Jobs: the plane's own reconcilers, run over one view of the cluster."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key
from homeport.runtime.reconciler import Reconciler
from homeport.runtime.workload.deployment import DeploymentReconciler
from homeport.runtime.workload.job import JobReconciler
from homeport.runtime.workload.kind import JOB, REVISION
from homeport.runtime.workload.namespace import NamespaceAware
from homeport.runtime.workload.replicaset import ReplicaSetReconciler
from homeport.runtime.workload.statefulset import StatefulSetReconciler
from homeport.sim.machine.workload.kind import DAEMON_SET, DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET
from homeport.sim.machine.workload.view import View, key_of, leaving

_RETRY_SECONDS = 1.0
_OWNERS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, JOB)


async def settle_deployments(view: View) -> None:
    sets, pods = view.by_owner(REPLICA_SET), view.by_owner(POD)
    await _settle(view, DEPLOYMENT, DeploymentReconciler(_Client(view), sets, pods, view.clock))


async def settle_replica_sets(view: View) -> None:
    await _settle(view, REPLICA_SET, ReplicaSetReconciler(_Client(view), view.by_owner(POD), view.clock))


async def settle_stateful_sets(view: View) -> None:
    pods, revisions = view.by_owner(POD), view.by_owner(REVISION)
    await _settle(view, STATEFUL_SET, StatefulSetReconciler(_Client(view), pods, revisions, view.clock))


async def settle_jobs(view: View) -> None:
    await _settle(view, JOB, JobReconciler(_Client(view), view.by_owner(POD), view.clock))


async def settle_orphans(view: View) -> None:
    """Deletes objects whose controlling owner is gone, as the garbage collector does."""
    kinds = {kind.kind for kind in _OWNERS}
    known = {owner["metadata"]["uid"] for kind in _OWNERS for owner in view.all(kind)}
    for kind in (REPLICA_SET, REVISION, POD):
        for obj in view.all(kind):
            owners = obj["metadata"].get("ownerReferences") or ()
            if any(ref["kind"] in kinds and ref["uid"] not in known for ref in owners) and not leaving(obj):
                await view.delete(kind, obj)


async def _settle(view: View, kind: Resource, reconciler: Reconciler) -> None:
    aware = NamespaceAware(reconciler)
    for obj in view.all(kind):
        try:
            wait = await aware.reconcile(key_of(obj))
        except (NotFound, Conflict):  # somebody else changed it during this pass
            view.later(_RETRY_SECONDS)
            continue
        if wait is not None and wait.after is not None:
            view.later(wait.after + 0.1)


class _Client:
    """Writes to the API server. Objects of the view are read from there: they are decoded already."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.create = view.client.create
        self.patch = view.client.patch
        self.delete = view.client.delete

    async def get(self, kind: Resource, key: Key) -> Any:
        found = self._view.find(kind, key)
        return Unstructured(found) if found is not None else await self._view.client.get(kind, key)
