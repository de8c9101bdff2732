"""Cluster with a topology: everything it consists of is made from its class, and kept as the class says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.capi.capi import Capi
from homeport.capi.name import Condition, Reason
from homeport.capi.unreadable import WORKERS, await_readable
from homeport.client.protocol import Key
from homeport.core.index import ensure_index
from homeport.core.topology import status, upgrade
from homeport.core.topology.apply import MANAGER, state_of
from homeport.core.topology.convergence import Convergence
from homeport.core.topology.desired.blueprint import Missing, TopologyError
from homeport.core.topology.desired.cluster import desire, find_values
from homeport.core.topology.observe import Observer, observed
from homeport.core.topology.scope import TopologyScope
from homeport.core.topology.source import Source
from homeport.machinery.condition import find, is_true
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase
from homeport.runtime.skeleton import ObjectReconciler

CLASS = "topology.class"
_CLASS_SECONDS = 10.0  # that a change of a class may take before Clusters complain


def matters(old: object, new: object) -> bool:
    """Statuses decide nothing here."""
    return old is None or new is None or _relevant_fields(old) != _relevant_fields(new)


def _relevant_fields(obj: Any) -> tuple[Any, ...]:
    return (*state_of(obj), obj.metadata.deletion_timestamp)


class TopologyReconciler(ObjectReconciler[Cluster, TopologyScope]):
    controller_name = "topology"
    kind = Cluster
    field_manager = MANAGER
    condition = Condition.TOPOLOGY_RECONCILED
    waits_are_events = False

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(manager)
        self._classes = manager.informers.get(ClusterClass).cache
        ensure_index(self.objects, CLASS, class_names)
        self._source = Source(capi, self.controller, self.users_of)
        self._observer = Observer(capi, self._source)
        self._convergence = Convergence(capi, self._source)
        self._changed: dict[Key, float] = {}  # Clusters whose class was changed, and when

    def users_of(self, cluster_class: Key) -> list[Key]:
        return [key_of(each) for each in self.objects.by(CLASS, str(cluster_class))]

    async def reconcile(self, key: Key) -> Wait | None:
        cluster = self.objects.get(key)
        wait = None if cluster is None or cluster.metadata.deletion_timestamp else self._class_in_work(cluster)
        return wait or await super().reconcile(key)

    def predicate(self, old: Cluster | None, new: Cluster | None) -> bool:
        found = new if new is not None else old
        return found is not None and found.spec.topology.class_ref is not None and matters(old, new)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._changed.pop(key, None)

    def load(self, obj: Cluster) -> TopologyScope | None:
        return None if obj.spec.topology.class_ref is None else TopologyScope(obj)

    def pause(self, scope: TopologyScope) -> bool:
        text = "" if scope.deleting else status.paused(scope.object)
        if text:
            scope.report(self.condition, "False", Reason.PAUSED, text, rfc3339(self.clock.now()))
        return bool(text)

    def phases(self, scope: TopologyScope) -> Sequence[Phase[TopologyScope]]:
        return [] if scope.deleting else [self._run]

    async def _run(self, scope: TopologyScope) -> Wait | None:
        cluster = scope.object
        try:
            given = self._ready_class(cluster)
            if isinstance(given, Wait):
                return given
            unreadable = await_readable(self.informers, scope.key.namespace, *WORKERS)
            if unreadable is not None:
                return unreadable
            blueprint = await self._observer.blueprint(cluster, given)
            values = find_values(cluster, blueprint)
            current = await self._observer.current(cluster, blueprint)
            plan = _planned(observed(cluster, blueprint, current))
            desired = desire(cluster, blueprint, current, plan, values)
            status.put_upgrade_plan(cluster, plan)
            await self._convergence.converge(scope, blueprint, current, plan, desired)
        except TopologyError as wrong:
            # The class, the Cluster, a template or a definition has to change, and any of them wakes us.
            return Wait(Reason.RECONCILE_FAILED, str(wrong), warning=not isinstance(wrong, Missing))
        names = {topology: each.object["metadata"]["name"] for topology, each in desired.deployments.items()}
        plane = f"{desired.control_plane['kind']} {desired.control_plane['metadata']['name']}"
        return status.waiting(cluster, plan, plane, names) or _flawed(given)

    def _class_in_work(self, cluster: Cluster) -> Wait | None:
        """A class that was changed a moment ago is looked at in a moment: nobody needs to hear of that."""
        if cluster.spec.topology.class_ref is None:
            self._changed.pop(key_of(cluster), None)
            return None
        found = self._class(cluster)
        told = find(cluster.status.conditions, Condition.TOPOLOGY_RECONCILED)
        if found is None or told is None or found.status.observed_generation == found.metadata.generation:
            self._changed.pop(key_of(cluster), None)
            return None
        since = self._changed.setdefault(key_of(cluster), self.clock.monotonic())
        left = since + _CLASS_SECONDS - self.clock.monotonic()
        return Wait(Reason.CLUSTER_CLASS_NOT_RECONCILED, after=left, quiet=True) if left > 0 else None

    def _class(self, cluster: Cluster) -> ClusterClass | None:
        (text,) = class_names(cluster)
        found: ClusterClass | None = self._classes.get(Key(*text.split("/")))
        return found

    def _ready_class(self, cluster: Cluster) -> ClusterClass | Wait:
        (text,) = class_names(cluster)
        found = self._class(cluster)
        if found is None:
            return Wait(Reason.CLUSTER_CLASS_NOT_RECONCILED, f"ClusterClass {text} does not exist")
        if found.status.observed_generation != found.metadata.generation:
            return Wait(Reason.CLUSTER_CLASS_NOT_RECONCILED, f"ClusterClass {text} has not been reconciled yet")
        if not is_true(found.status.conditions, Condition.VARIABLES_READY):
            return Wait(
                Reason.CLUSTER_CLASS_NOT_RECONCILED,
                f"ClusterClass {text} is not usable: see its condition {Condition.VARIABLES_READY}",
            )
        return found


def _flawed(given: ClusterClass) -> Wait | None:
    """Templates that this Cluster does not use, and could not use either."""
    said = find(given.status.conditions, Condition.REF_VERSIONS_UP_TO_DATE)
    if said is None or said["reason"] != Reason.TEMPLATES_NOT_USABLE:
        return None
    return Wait(Reason.TEMPLATES_NOT_USABLE, f"ClusterClass {given.metadata.name}: {said['message']}")


def class_names(cluster: Cluster) -> Iterable[str]:
    """The ClusterClass of a Cluster, which may be in another namespace; nothing when it has none."""
    ref = cluster.spec.topology.class_ref
    return () if ref is None else (f"{ref.namespace or cluster.metadata.namespace}/{ref.name}",)


def _planned(seen: upgrade.Observed) -> upgrade.Plan:
    try:
        return upgrade.plan(seen)
    except ValueError as wrong:
        raise TopologyError(f"spec.topology.version: {wrong}") from wrong
