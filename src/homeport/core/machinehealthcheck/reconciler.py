"""MachineHealthCheck: looks at Machines and their Nodes, marks the unhealthy, and leaves the rest to their owners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineHealthCheck
from homeport.capi import name
from homeport.capi.capi import Capi
from homeport.capi.object import summary
from homeport.capi.object.ownership import ensure_owner, owner_reference
from homeport.capi.object.paused import has_annotation
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.unreadable import AGAIN_SECONDS, MACHINE, await_readable
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.core.index import by_cluster
from homeport.core.machinehealthcheck import mark
from homeport.core.machinehealthcheck.budget import Budget, weigh
from homeport.core.machinehealthcheck.check import Healthy, Target, Undecided, Unhealthy, Verdict, check
from homeport.core.machinehealthcheck.external import External
from homeport.machinery import condition
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

MANAGER = "homeport-machinehealthcheck"
RESTRICTED = "RemediationRestricted"
MARKED = "MachineMarkedUnhealthy"
# Templates and requests of external remediation are not watched: their kinds follow no contract that we could go by.
_EXTERNAL_SECONDS = 30.0


class CheckScope(Scope[MachineHealthCheck]):
    def __init__(self, check: MachineHealthCheck, cluster: Cluster | None) -> None:
        super().__init__(check)
        self.cluster = cluster
        self.trouble = ""

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """The reconciler fills in the status itself; errors are recorded as events."""
        return None


class CheckReconciler(CapiReconciler[MachineHealthCheck, CheckScope]):
    controller_name = "machinehealthcheck"
    kind = MachineHealthCheck
    field_manager = MANAGER
    condition = name.Condition.REMEDIATION_ALLOWED

    def __init__(self, capi: Capi) -> None:
        manager = capi.manager
        super().__init__(manager)
        self._remotes = capi.remotes
        self._machines = manager.informers.get(Machine).cache
        self._clusters = manager.informers.get(Cluster).cache
        self.of_cluster = by_cluster(self.objects)
        self._machines_of = by_cluster(self._machines)
        self._external = External(manager.client, self._write)
        self._restricted: set[Key] = set()  # checks that may not replace what is unhealthy, and said so
        self._connected: dict[Key, float] = {}  # since when clusters can be asked

    def connection_changed(self, cluster: Key) -> None:
        if self._remotes.get(cluster) is None:
            self._connected.pop(cluster, None)
        else:
            self._connected.setdefault(cluster, self.clock.now())

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._restricted.discard(key)

    def load(self, obj: MachineHealthCheck) -> CheckScope:
        return CheckScope(obj, self._clusters.get(Key(obj.metadata.namespace, obj.spec.cluster_name)))

    def cluster_of(self, scope: CheckScope) -> Cluster | None:
        return scope.cluster

    def phases(self, scope: CheckScope) -> Sequence[Phase[CheckScope]]:
        return [] if scope.deleting else [self._check]

    async def _check(self, scope: CheckScope) -> Wait | None:
        if scope.cluster is None:
            # The Cluster's coming wakes us.
            return Wait("WaitingForCluster", f"Cluster {scope.object.spec.cluster_name} does not exist")
        await self._hold_check(scope, scope.cluster)
        targets = self._observe(scope, scope.cluster)
        now = self.clock.now()
        judged = [(each, check(each, scope.cluster, scope.object.spec.checks, now)) for each in targets]
        healthy = sum(isinstance(verdict, Healthy) for _, verdict in judged)
        budget = weigh(scope.object.spec.remediation.trigger_if, expected=len(targets), healthy=healthy)
        unreadable = await_readable(self.informers, scope.key.namespace, MACHINE)
        if unreadable is not None:
            budget = Budget(False, 0, unreadable.message, unreadable.reason)
        self._report(scope, targets, healthy, budget)
        unhealthy = any(isinstance(v, Unhealthy) and not each.machine.metadata.deletion_timestamp for each, v in judged)
        self._tell_restricted(scope, budget, unhealthy)
        again = await self._mark(scope, judged, budget)
        left = [verdict.after for _, verdict in judged if isinstance(verdict, Undecided) and verdict.after is not None]
        if again is not None:
            left.append(again)
        if unreadable is not None:
            left.append(AGAIN_SECONDS)
        # Exactly when the first Machine's time is up; everything else wakes us.
        return Wait("WatchingMachines", after=max(min(left), 0.001), quiet=True) if left else None

    # -- reading -----------------------------------------------------------------------------------------------

    async def _hold_check(self, scope: CheckScope, cluster: Cluster) -> None:
        written = await ensure_owner(
            self.client,
            MachineHealthCheck,
            scope.object,
            owner_reference(cluster),
            self._write,
            labels={name.CLUSTER_NAME_LABEL: cluster.metadata.name},
        )
        scope.update_metadata(written)

    def _observe(self, scope: CheckScope, cluster: Cluster) -> list[Target]:
        where = key_of(cluster)
        remote = self._remotes.get(where)
        if remote is not None:
            self._connected.setdefault(where, self.clock.now())
        selector = from_label_selector(scope.object.spec.selector)
        found: list[Target] = []
        for machine in sorted(self._machines_of(where), key=lambda m: m.metadata.name):
            labels = {**machine.metadata.labels, name.CLUSTER_NAME_LABEL: machine.spec.cluster_name}
            skipped = name.SKIP_REMEDIATION in machine.metadata.annotations or has_annotation(machine)
            if skipped or not selector.matches(labels):
                continue
            ref = machine.status.node_ref
            node = remote.nodes.get(Key("", ref.name)) if remote is not None and ref is not None else None
            found.append(Target(machine, node, remote is not None, self._connected.get(where)))
        return found

    # -- telling -----------------------------------------------------------------------------------------------

    def _report(self, scope: CheckScope, targets: Sequence[Target], healthy: int, budget: Budget) -> None:
        held = scope.object
        status = held.status
        status.expected_machines = len(targets)
        status.current_healthy = healthy
        status.remediations_allowed = budget.left
        status.targets = [each.machine.metadata.name for each in targets]
        status.observed_generation = held.metadata.generation
        status.conditions = summary.ordered(
            condition.put(
                status.conditions,
                name.Condition.REMEDIATION_ALLOWED,
                "True" if budget.allowed else "False",
                name.Reason.REMEDIATION_ALLOWED if budget.allowed else budget.reason,
                budget.message,
                now=rfc3339(self.clock.now()),
                generation=held.metadata.generation,
            )
        )

    def _tell_restricted(self, scope: CheckScope, budget: Budget, unhealthy: bool) -> None:
        """Once, and only where a Machine would be replaced otherwise: new ones are expected not to be healthy yet."""
        if budget.allowed or not unhealthy:
            self._restricted.discard(scope.key)
        elif scope.key not in self._restricted:
            self._restricted.add(scope.key)
            self.recorder.record(scope.object, RESTRICTED, budget.message, warning=True)

    async def _mark(self, scope: CheckScope, judged: Iterable[tuple[Target, Verdict]], budget: Budget) -> float | None:
        """Marks the Machines. Returns the seconds until a retry, for changes that no watch reports."""
        again: float | None = None
        for target, verdict in judged:
            machine = target.machine
            if machine.metadata.deletion_timestamp:
                continue  # it is being remediated, or nobody wants it
            if isinstance(verdict, Healthy):
                await self._mark_healthy(scope, machine)
            elif isinstance(verdict, Unhealthy) and await self._mark_unhealthy(scope, machine, verdict, budget):
                again = _EXTERNAL_SECONDS
        return again

    async def _mark_healthy(self, scope: CheckScope, machine: Machine) -> None:
        ref = scope.object.spec.remediation.template_ref
        if ref is not None:
            await self._external.withdraw(ref, machine)
        await self._write_conditions(machine, mark.healthy(machine, rfc3339(self.clock.now())))

    async def _mark_unhealthy(self, scope: CheckScope, machine: Machine, verdict: Unhealthy, budget: Budget) -> bool:
        """True: somebody else should remediate it and could not be asked."""
        now = rfc3339(self.clock.now())
        found = mark.unhealthy(machine, verdict, now)
        ref = scope.object.spec.remediation.template_ref
        failed = False
        if budget.allowed and ref is not None:
            reason, message = await self._external.request(ref, machine)
            failed = reason != name.Reason.WAITING_FOR_REMEDIATION
            found = mark.for_others(machine, found, reason, message, now)
        elif budget.allowed:
            found = mark.for_owner(machine, found, now)
        if await self._write_conditions(machine, found):
            text = f"MachineHealthCheck {scope.key.name}: {verdict.message}"
            self.recorder.record(machine, MARKED, text, warning=True)
        return failed

    async def _write_conditions(self, machine: Machine, conditions: mark.Conditions) -> bool:
        if conditions == machine.status.conditions:
            return False
        meta = machine.metadata
        patch = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "status": {"conditions": summary.ordered(conditions)},
        }
        try:
            await self.client.patch(Machine, key_of(machine), MergePatch(patch), self._write, subresource="status")
        except NotFound:
            return False
        return True
