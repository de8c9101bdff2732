"""ClusterAddon: brings an add-on into its Cluster, keeps it there as written, and removes it.

A ClusterAddon with a selector creates one ClusterAddon per Cluster (see spread.py): each Cluster has a queue key, a
backoff and a status of its own, so that one that is broken delays only itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.addons.chart.release import Charts
from homeport.addons.convergence import Convergence
from homeport.addons.name import FINALIZER, MANAGER
from homeport.addons.peers import Peers, is_ready
from homeport.addons.problem import Problem
from homeport.addons.scope import AddonScope
from homeport.addons.spread import Spread
from homeport.addons.target.object import Stamps, Target
from homeport.addons.target.removal import Removal
from homeport.addons.target.repair import Repairs
from homeport.addons.target.watch import Watches
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.capi import Capi
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.reconciler import CapiReconciler
from homeport.client.protocol import Key
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_DOUBT_SECONDS = 50.0  # as long as a Cluster may be silent before its followers are notified
_EXPECTED_FAILURES = 3  # a definition or a webhook that was created a moment ago does not answer yet
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 120.0  # until what a cluster refused is tried again


class AddonReconciler(CapiReconciler[ClusterAddon, AddonScope]):
    controller_name = "clusteraddon"
    kind = ClusterAddon
    field_manager = MANAGER
    finalizer = FINALIZER
    status_wakes = False
    workers = 32  # a cluster that answers slowly keeps its workers for seconds

    def __init__(self, capi: Capi, settings: ChartSettings) -> None:
        manager = capi.manager
        self._charts = charts = Charts(manager.client, manager.clock, settings)
        super().__init__(manager)
        self._capi = capi
        self._clusters = manager.informers.get(Cluster).cache
        self._stamps: dict[Key, Stamps] = {}
        self._failures: dict[Key, int] = {}
        self._repairs: dict[Key, Repairs] = {}
        self._worked_on: dict[Key, str] = {}  # UID of the Cluster that the above is about
        self.watches = Watches(self.controller.wake)
        self.peers = Peers(self.objects)
        self._spread = Spread(manager.client, self.objects, self._clusters, self._write)
        self._convergence = Convergence(capi, charts)
        self._removal = Removal(charts)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._failures.pop(key, None)
        self._worked_on.pop(key, None)
        self._forget_cluster(key)

    def _forget_cluster(self, key: Key) -> None:
        self._stamps.pop(key, None)
        self._repairs.pop(key, None)
        self.watches.forget(key)
        self._charts.forget(key)

    def load(self, obj: ClusterAddon) -> AddonScope | None:
        name = obj.spec.cluster_name
        scope = AddonScope(obj, self._clusters.get(Key(obj.metadata.namespace, name)) if name else None)
        return None if self._is_unknown(scope) else scope

    def _is_unknown(self, scope: AddonScope) -> bool:
        """Whether it was Ready, and its Cluster was not asked for long enough to know better.

        After a restart that is so of all add-ons: what those before us found out still counts for a while.
        """
        if scope.cluster_leaves or scope.deleting or not is_ready(scope.object):
            return False
        remotes, cluster = self._capi.remotes, scope.cluster_key
        since = remotes.silent_since(cluster)
        return remotes.get(cluster) is None and (since is None or self.clock.now() - since < _DOUBT_SECONDS)

    def cluster_of(self, scope: AddonScope) -> Cluster | None:
        return scope.cluster

    def pause(self, scope: AddonScope) -> bool:
        """A Cluster that is being deleted must not be held by a pause."""
        paused = super().pause(scope)
        if scope.object.spec.paused and not scope.deleting:
            paused = True
        if paused and scope.deleting and scope.cluster_leaves:
            paused = False
        if paused:
            scope.object.status.phase = "Paused"
        return paused

    def phases(self, scope: AddonScope) -> Sequence[Phase[AddonScope]]:
        if not scope.object.spec.cluster_name:
            if scope.deleting:
                return [self._spread.release, self.drop_finalizer]
            return [self.hold_finalizer, self._spread.converge]
        if scope.deleting:
            return [self._remove, self.drop_finalizer]
        return [self._await_cluster, self.hold_finalizer, self._await_dependencies, self._converge]

    # -- gates -------------------------------------------------------------------------------------------------

    async def _await_cluster(self, scope: AddonScope) -> Wait | None:
        scope.pending()
        name = scope.object.spec.cluster_name
        if scope.cluster is None:
            where = f"{scope.object.metadata.namespace}/{name}"
            return Wait("ClusterNotFound", f"spec.clusterName: Cluster {where} does not exist: create it")
        if scope.cluster.metadata.deletion_timestamp:
            return Wait("ClusterDeleting", f"Cluster {name} is being deleted")
        scope.remote = self._capi.remotes.get(scope.cluster_key)
        if scope.remote is None:
            return Wait("WaitingForCluster", f"Cluster {name}: {self._capi.remotes.why(scope.cluster_key)}")
        return None

    async def _await_dependencies(self, scope: AddonScope) -> Wait | None:
        return self.peers.await_first(scope.object, scope.cluster_key)

    # -- work --------------------------------------------------------------------------------------------------

    async def _converge(self, scope: AddonScope) -> Wait | None:
        return await self._tried(scope, lambda: self._convergence.run(scope, self._target(scope), self._now()))

    async def _remove(self, scope: AddonScope) -> Wait | None:
        """Whoever deletes a Cluster deletes what is in it: then nothing there is waited for."""
        scope.phase = "Deleting"
        if not self.holds_finalizer(scope) or scope.cluster_leaves:
            return None
        wait = self.peers.await_dependents(scope.object, scope.cluster_key)
        if wait is not None or scope.object.spec.deletion_policy == "Orphan":
            return wait
        scope.remote = self._capi.remotes.get(scope.cluster_key)
        if scope.remote is None:
            why = self._capi.remotes.why(scope.cluster_key)
            advice = "to leave the add-on in the cluster, set spec.deletionPolicy to Orphan"
            message = f"Cluster {scope.cluster_key.name}: {why}; {advice}"
            return Wait("WaitingForCluster", message)
        return await self._tried(scope, lambda: self._removal.run(scope, self._target(scope)))

    async def _tried(self, scope: AddonScope, work: Any) -> Wait | None:
        """Runs `work`; a Problem becomes a Wait, with a longer delay each time it stays."""
        try:
            wait: Wait | None = await work()
        except Problem as problem:
            # Namespaces are not watched: one that somebody deleted is created again.
            for identity in [each for each in self._stamps.get(scope.key, {}) if each[1] == "Namespace"]:
                del self._stamps[scope.key][identity]
            after, warning = problem.after, problem.warning
            if after is not None:
                count = self._failures[scope.key] = self._failures.get(scope.key, 0) + 1
                after = max(after, min(_FIRST_SECONDS * 2.0 ** min(count - 1, 20), _LONGEST_SECONDS))
                warning = warning and (problem.reason != "ApplyFailed" or count > _EXPECTED_FAILURES)
            return Wait(problem.reason, problem.message, after=after, warning=warning)
        self._failures.pop(scope.key, None)
        return wait

    def _target(self, scope: AddonScope) -> Target:
        spec, key = scope.object.spec, scope.key
        assert scope.remote is not None
        assert scope.cluster is not None
        if self._worked_on.setdefault(key, scope.cluster.metadata.uid) != scope.cluster.metadata.uid:
            self._forget_cluster(key)  # another Cluster has the name now
            self._worked_on[key] = scope.cluster.metadata.uid
        return Target(
            scope.remote,
            key,
            self.watches,
            self._capi.manager.fence,
            self._stamps.setdefault(key, {}),
            adopt=spec.conflict_policy == "Adopt",
            yields=spec.conflict_policy == "Yield",
            ignored=spec.drift_ignore,
            repairs=self._repairs.setdefault(key, Repairs(self.clock)),
            rivals=self.peers.others(key, scope.cluster_key),
        )

    def _now(self) -> float:
        return self.clock.now()
