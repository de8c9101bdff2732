"""The reconciler of every InfraCluster kind: preflight, what machines need, failure domains, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi import name as names
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import owner_of_kind
from homeport.capi.unreadable import await_readable
from homeport.client.protocol import Key, MergePatch
from homeport.infra.cluster.failuredomain import render_failure_domains
from homeport.infra.error import ProviderError, policy_of
from homeport.infra.machine.departure import Departures
from homeport.infra.orphan.reconciler import Orphans
from homeport.infra.orphan.witness import Witness
from homeport.infra.preflight.check import check_cluster, fold
from homeport.infra.preflight.plan import Plans
from homeport.infra.protocol import Check, ClusterScope, Provider, Session
from homeport.infra.reconciler import ProviderReconciler, ProviderScope, is_provisioned
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

BY_CLUSTER = "cluster"
_CHECK_AGAIN_SECONDS = 30.0


class ClusterReconciler(ProviderReconciler[C], Generic[C, M, S]):
    def __init__(self, manager: Manager, provider: Provider[C, M, S], capi: Capi | None = None) -> None:
        kind, finalizers = provider.cluster_kind, (provider.cluster_finalizer, provider.former_finalizers)
        super().__init__(manager, provider.name, "cluster", kind, *finalizers)
        self._provider = provider
        template = provider.template_kind
        self.plans = Plans(manager, self.controller, provider.cluster_kind, template) if template else None
        self.departures = Departures(manager, provider, self.controller.queue.add)
        self._clusters = manager.informers.get(Cluster).cache
        self._machines = manager.informers.get(provider.machine_kind).cache
        self._machines.add_index(BY_CLUSTER, _cluster_index)
        self._orphans = Orphans(
            provider,
            self.client,
            self.recorder,
            self.clock,
            self._machines,
            Witness(capi),
            self.departures,
            manager.fence,
            lambda namespace: manager.informers.unreadable(namespace, provider.machine_kind.__resource__),
        )

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._orphans.forget(key)

    def load(self, obj: C) -> ProviderScope[C] | None:
        """None: somebody else provides this infrastructure, and reports when it is ready."""
        return None if names.MANAGED_BY in obj.metadata.annotations else ProviderScope(obj, self._owner(obj))

    def phases(self, scope: ProviderScope[C]) -> Sequence[Phase[ProviderScope[C]]]:
        return [self._guarded]

    async def _guarded(self, scope: ProviderScope[C]) -> Wait | None:
        await self._orphans.record(scope)
        try:
            work = self._release if scope.deleting else self._normal
            wait = await work(scope, scope.cluster)
        except ProviderError as error:
            await self._orphans.refuse(scope, error.message)
            self._report_reachable(scope, error)
            return self._failed(scope, error)
        self._went_well(scope.key)
        self._report_reachable(scope)
        return wait

    async def _connect(self, scope: ProviderScope[C]) -> S:
        kind = self._provider.conditions.connection
        try:
            connector = self._provider.connector
            session = await self._session(scope, connector.connect(scope.object), connector.sources(scope.object))
        except ProviderError as error:
            self._condition(scope, kind, False, policy_of(error).reason, error.message)
            raise
        self._condition(scope, kind, True, "Succeeded")
        return session

    # -- growing -----------------------------------------------------------------------------------------------

    async def _normal(self, scope: ProviderScope[C], cluster: Cluster | None) -> Wait | None:
        if cluster is None:
            scope.brief = True
            return Wait(
                "WaitingForOwner",
                "no Cluster owns this object yet: name it in a Cluster's infrastructureRef",
                quiet=True,  # the Cluster takes it in a moment, or somebody forgot it: the condition says so
            )
        driver_scope = self._scope(scope, cluster, await self._connect(scope))
        if self.plans is not None:
            driver_scope.plan = await self.plans.of(cluster)
        place = self._provider.location(driver_scope.session).name or self._provider.name
        failed = self._report_checks(
            scope, await self._answer(scope, check_cluster(self._provider, driver_scope), place)
        )
        if failed is not None and not driver_scope.provisioned:
            return failed
        # Not earlier: the finalizer is the proof that the vendor may hold something. Without it the object can be
        # deleted without asking the vendor, which may be impossible for ever; a status can get lost.
        await self.hold_finalizer(scope)
        self._fence()
        wait = await self._answer(scope, self._provider.cluster_driver.converge(driver_scope), place)
        if wait is not None:
            return wait
        await self._publish(scope, driver_scope)
        await self._look_for_orphans(scope, driver_scope)
        return None

    def _scope(self, scope: ProviderScope[C], cluster: Cluster, session: S) -> ClusterScope[C, S]:
        return ClusterScope(
            cluster,
            scope.object,
            session,
            provisioned=is_provisioned(scope.object),
            report=lambda kind, ok, reason, message: self._condition(scope, kind, ok, reason, message),
        )

    def _report_checks(self, scope: ProviderScope[C], checks: Sequence[Check]) -> Wait | None:
        """Each condition combines its checks and reports all failures at once, not one at a time."""
        failed: list[Check] = []
        for kind in dict.fromkeys(check.condition for check in checks):
            bad = [check for check in checks if check.condition == kind and not check.ok]
            failed += [check for check in bad if not check.advisory]
            self._report_check(scope, kind, bad)
        if not failed:
            return None
        message = fold(check.message for check in failed)
        waiting = all(check.waiting for check in failed)
        return Wait(failed[0].reason, message, after=_CHECK_AGAIN_SECONDS, warning=not waiting, quiet=waiting)

    def _report_check(self, scope: ProviderScope[C], kind: str, bad: Sequence[Check]) -> None:
        """Problems that block nothing are also recorded as events: otherwise no one would notice them."""
        reason = bad[0].reason if bad else "Succeeded"
        message = fold(check.message for check in bad)
        news = scope.report(kind, "False" if bad else "True", reason, message, rfc3339(self.clock.now()))
        if news and bad and all(check.advisory for check in bad):
            self.recorder.record(scope.object, reason, message, warning=True)

    async def _publish(self, scope: ProviderScope[C], driver_scope: ClusterScope[C, S]) -> None:
        await self._hold_endpoint(scope, await self._provider.cluster_driver.endpoint(driver_scope))
        status: Any = getattr(scope.object, "status", None)
        domains = await self._provider.cluster_driver.failure_domains(driver_scope)
        if hasattr(status, "failure_domains"):
            status.failure_domains = render_failure_domains(domains, type(status))
        status.ready = True
        status.initialization.provisioned = True

    async def _hold_endpoint(self, scope: ProviderScope[C], endpoint: tuple[str, int] | None) -> None:
        spec: Any = getattr(scope.object, "spec", None)
        held = spec.control_plane_endpoint
        if endpoint is None or (held.host, held.port) == endpoint:
            return
        body = {
            "spec": {"controlPlaneEndpoint": {"host": endpoint[0], "port": endpoint[1]}},
            "metadata": {"uid": scope.object.metadata.uid},
        }
        written = await self.client.patch(self._provider.cluster_kind, scope.key, MergePatch(body), self._write)
        held.host, held.port = endpoint
        scope.update_metadata(written)

    # -- machines without objects ------------------------------------------------------------------------------

    async def _look_for_orphans(self, scope: ProviderScope[C], driver_scope: ClusterScope[C, S]) -> None:
        kind = self._provider.conditions.orphans

        def report(ok: bool, reason: str, message: str) -> None:
            self._condition(scope, kind, ok, reason, message)

        due = await self._orphans.look_now_and_then(scope, driver_scope, report)
        if not self._provider.vip_interface(scope.object):
            due = min(due, self._provider.front_seconds)
        self._wake(scope.key, after=due)  # neither machines without objects nor load balancers announce themselves

    # -- shrinking ---------------------------------------------------------------------------------------------

    async def _release(self, scope: ProviderScope[C], cluster: Cluster | None) -> Wait | None:
        if not self.holds_finalizer(scope):
            return None
        name = cluster.metadata.name if cluster else scope.object.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
        left = self._machines.by(BY_CLUSTER, f"{scope.key.namespace}/{name}")
        if left:
            shown = ", ".join(sorted(each.metadata.name for each in left)[:3])
            return Wait("WaitingForMachines", f"{len(left)} machines of the cluster still exist ({shown})")
        machine_kind = self._provider.machine_kind.__resource__
        unreadable = await_readable(self.informers, scope.key.namespace, machine_kind)
        if unreadable is not None:
            return unreadable
        session = await self._connect(scope)
        driver_scope = self._scope(scope, cluster or _named(name, scope.key.namespace), session)
        wait = await self._orphans.release(scope, driver_scope)
        if wait is not None:
            return wait
        self._fence()
        wait = await self._provider.cluster_driver.release(driver_scope)
        if wait is not None:
            return wait
        return await self.drop_finalizer(scope)

    def _owner(self, infra: C) -> Cluster | None:
        owner = owner_of_kind(infra, Cluster.__resource__)
        return None if owner is None else self._clusters.get(Key(infra.metadata.namespace, owner["name"]))


def _cluster_index(obj: Object) -> list[str]:
    name = obj.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
    return [f"{obj.metadata.namespace}/{name}"] if name else []


def _named(name: str, namespace: str) -> Cluster:
    cluster = Cluster()
    cluster.metadata.name, cluster.metadata.namespace = name, namespace
    return cluster
