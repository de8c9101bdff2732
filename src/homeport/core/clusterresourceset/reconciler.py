"""ClusterResourceSet: looks which Clusters match and what they have, and brings what they lack."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.addons.v1beta2 import ClusterResourceSet
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi import name
from homeport.capi.capi import Capi
from homeport.capi.object import summary
from homeport.capi.object.ownership import ensure_owner, owner_reference
from homeport.capi.object.paused import is_paused
from homeport.capi.object.selection import selected_clusters
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.remote.visit import connected
from homeport.client.config import ConfigError
from homeport.client.errors import ApiError
from homeport.client.protocol import Key
from homeport.core.clusterresourceset.binding import Ledger
from homeport.core.clusterresourceset.plan import Outcome, Ref, is_due
from homeport.core.clusterresourceset.source import METADATA, Source, Sources
from homeport.core.clusterresourceset.target import Failure, apply_objects
from homeport.machinery import condition
from homeport.runtime.cache import key_of
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.lease import LeaseLost
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

MANAGER = "homeport-clusterresourceset"
APPLIED = "ResourcesApplied"
_AT_ONCE = 16  # Clusters that are written to at the same time
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 300.0  # until what a cluster refused is tried again
_EXPECTED_SECONDS = 10.0  # that one `kubectl apply` may need for a set and all that it names
_EXPECTED_FAILURES = 3  # a definition that was created a moment ago is not served yet
_SHOWN = 5  # lines of a condition's message


@dataclass(slots=True)
class Report:
    """What keeps resources from being where they should be."""

    lines: list[str] = field(default_factory=list)
    reason: str = name.Reason.NOT_APPLIED
    retry: bool = False  # a request was refused; no event follows when it would succeed
    missing: bool = False  # a resource does not exist: it may be created in a moment
    lost: bool = False  # a cluster stopped answering; the Cluster itself reports that
    warning: bool = False  # somebody should look

    @property
    def message(self) -> str:
        shown, more = sorted(self.lines)[:_SHOWN], len(self.lines) - _SHOWN
        return "\n".join([*shown, *([f"... ({more} more)"] if more > 0 else [])])


class SetScope(Scope[ClusterResourceSet]):
    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """`reported` says Ready when all is done; the set says which Clusters that means, and has said it already."""
        held = self.object.status
        if status == "True":
            return False
        reason = name.Reason.INTERNAL_ERROR if reason == "ReconcileError" else reason
        before = condition.find(held.conditions, kind)
        said = None if before is None else (before["reason"], before["message"])
        held.conditions = summary.store(
            held.conditions,
            [{"type": kind, "status": status, "reason": reason, "message": message}],
            now=now,
            generation=self.object.metadata.generation,
        )
        return said != (reason, message)


class SetReconciler(CapiReconciler[ClusterResourceSet, SetScope]):
    controller_name = "clusterresourceset"
    kind = ClusterResourceSet
    field_manager = MANAGER
    finalizer = name.RESOURCE_SET_FINALIZER
    status_wakes = False
    waits_are_events = True
    condition = name.Condition.RESOURCES_APPLIED

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(manager)
        self._capi = capi
        self._remotes = capi.remotes
        self._clusters = manager.informers.get(Cluster).cache
        self._ledger = Ledger(manager, self._write)
        self._sources = Sources(manager)
        self._fence = manager.fence
        self._failures: dict[Key, int] = {}

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._failures.pop(key, None)

    def load(self, obj: ClusterResourceSet) -> SetScope:
        return SetScope(obj)

    def phases(self, scope: SetScope) -> Sequence[Phase[SetScope]]:
        return [self._release, self.drop_finalizer] if scope.deleting else [self.hold_finalizer, self._converge]

    async def _converge(self, scope: SetScope) -> Wait | None:
        held = scope.object
        clusters = self.matching(held)
        report = Report()
        sources = await self._observe(held, report) if clusters else []
        await self._bring_all(held, clusters, sources, report)
        held.status.observed_generation = held.metadata.generation
        if report.lines:
            after = self._after(scope.key, report)
            left = self._expected_for(scope) if report.missing else 0.0
            if left > 0:
                after = left if after is None else min(left, after)
            refused = report.retry and self._failures.get(scope.key, 0) > _EXPECTED_FAILURES
            warning = report.warning or refused or (report.missing and left <= 0)
            return Wait(report.reason, report.message, after=after, warning=warning)
        self._failures.pop(scope.key, None)
        self._say_applied(held, clusters)
        return None

    # -- reading -----------------------------------------------------------------------------------------------

    def matching(self, held: ClusterResourceSet) -> list[Cluster]:
        """The Clusters that get the resources, in the order of their names."""
        return selected_clusters(self._clusters, held.metadata.namespace, held.spec.cluster_selector)

    async def _observe(self, held: ClusterResourceSet, report: Report) -> list[Source]:
        """All resources that can be applied; what is wrong with the others is reported."""
        found = []
        for each in held.spec.resources:
            source = await self._sources.look(held.metadata.namespace, Ref(each.kind, each.name))
            await self._hold_source(held, source)
            if source.trouble:
                report.lines.append(f"{source.ref}: {source.trouble}")
                report.missing = report.missing or source.metadata is None
                report.warning = report.warning or source.metadata is not None
                if source.reason == name.Reason.WRONG_SECRET_TYPE:
                    report.reason = source.reason
            else:
                found.append(source)
        return found

    # -- writing -----------------------------------------------------------------------------------------------

    async def _hold_source(self, held: ClusterResourceSet, source: Source) -> None:
        """Goes with the set when it is deleted or moved to another management cluster."""
        if source.metadata is not None:
            kind = METADATA[source.ref.kind]
            source.metadata = await ensure_owner(self.client, kind, source.metadata, owner_reference(held), self._write)

    async def _bring_all(
        self, held: ClusterResourceSet, clusters: Sequence[Cluster], sources: Sequence[Source], report: Report
    ) -> None:
        """A Cluster that is slow holds up no other. Raises what our own API server refused, when all are through."""
        gate, refused = asyncio.Semaphore(_AT_ONCE), list[Exception]()

        async def bring(cluster: Cluster, due: Sequence[Source]) -> None:
            async with gate:
                try:
                    await self._bring(held, cluster, due, report)
                except (ApiError, LeaseLost) as error:
                    refused.append(error)

        async with asyncio.TaskGroup() as group:
            for cluster in clusters:
                known = self._ledger.known(key_of(cluster), held.metadata.name)
                due = [each for each in sources if is_due(held.spec.strategy, known.get(each.ref), each.digest)]
                if due:
                    group.create_task(bring(cluster, due))
        if refused:
            raise refused[0]

    async def _bring(self, held: ClusterResourceSet, cluster: Cluster, due: Sequence[Source], report: Report) -> None:
        where, said = key_of(cluster), f"Cluster {cluster.metadata.name}"
        if is_paused(cluster, cluster):
            report.lines.append(f"{said}: it is paused")
            return
        if self._remotes.get(where) is None and (self._remotes.mine(where) or not _answers(cluster)):
            report.lines.append(f"{said}: {self._remotes.why(where)}")
            return
        try:
            async with connected(self._capi, self.client, where) as client:
                outcomes = await self._apply_all(held, said, client, due, report)
        except ConfigError as error:
            report.lines.append(f"{said}: {error}")
            return
        await self._ledger.record(where, held, outcomes, rfc3339(self.clock.now()))
        self._tell_applied(held, cluster, outcomes)

    async def _apply_all(
        self, held: ClusterResourceSet, said: str, client: Any, due: Sequence[Source], report: Report
    ) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for source in due:
            failures = await self._apply(held, client, source)
            outcomes.append(Outcome(source.ref, source.digest, applied=not failures))
            for failure in failures:
                report.lines.append(f"{said}: {source.ref}: {failure}")
                report.retry = report.retry or not failure.lost
                report.lost = report.lost or failure.lost
            if any(failure.lost for failure in failures):
                break
        return outcomes

    async def _apply(self, held: ClusterResourceSet, client: Any, source: Source) -> list[Failure]:
        if source.objects is None:
            fresh = await self._sources.read(held.metadata.namespace, source.ref, source.metadata)
            if fresh.trouble:
                return [Failure(str(source.ref), fresh.trouble)]
            source.objects, source.digest = fresh.objects, fresh.digest
        self._fence()  # workload clusters don't know which of several replicas leads
        return await apply_objects(client, source.objects or (), held.spec.strategy)

    async def _release(self, scope: SetScope) -> Wait | None:
        if self.finalizer in scope.object.metadata.finalizers:
            await self._ledger.release(scope.object)
        return None

    # -- reporting -----------------------------------------------------------------------------------------------

    def _after(self, key: Key, report: Report) -> float | None:
        """Changes of resources, of Clusters and of connections wake us; what a cluster refused is tried again."""
        if not report.retry and not report.lost:
            self._failures.pop(key, None)
            return None
        count = self._failures[key] = self._failures.get(key, 0) + 1
        return min(_FIRST_SECONDS * 2.0 ** min(count - 1, 20), _LONGEST_SECONDS)

    def _expected_for(self, scope: SetScope) -> float:
        """Seconds in which what the set names may still come."""
        created = scope.object.metadata.creation_timestamp
        return parse_time(created) + _EXPECTED_SECONDS - self.clock.now() if created else 0.0

    def _say_applied(self, held: ClusterResourceSet, clusters: Sequence[Cluster]) -> None:
        message = "" if clusters else "no Cluster matches spec.clusterSelector"
        held.status.conditions = summary.store(
            held.status.conditions,
            [{"type": self.condition, "status": "True", "reason": name.Reason.APPLIED, "message": message}],
            now=rfc3339(self.clock.now()),
            generation=held.metadata.generation,
        )

    def _tell_applied(self, held: ClusterResourceSet, cluster: Cluster, outcomes: Iterable[Outcome]) -> None:
        done = [str(each.ref) for each in outcomes if each.applied]
        if done:
            self.recorder.record(held, APPLIED, f"Cluster {cluster.metadata.name} has {', '.join(done)}")


def _answers(cluster: Cluster) -> bool:
    """Whether the replica that is connected to the cluster reports that it answers."""
    return condition.is_true(cluster.status.conditions, name.Condition.REMOTE_CONNECTION_PROBE)
