"""MultiClusterService: a ServiceSet for each ClusterDeployment whose labels match, and a summary of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.addons.dependency import find_cycle
from homeport.api.k0rdent.v1beta1 import (
    ClusterDeployment,
    MultiClusterService,
    ServiceSet,
    ServiceTemplate,
    ServiceTemplateChain,
)
from homeport.api.k0rdent.v1beta1.multicluster import MatchingCluster
from homeport.api.k0rdent.v1beta1.service import ServiceState
from homeport.capi.component import Setup
from homeport.capi.reconciler import PausableReconciler
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.reconciler import K0rdentReconciler
from homeport.platforms.k0rdent.service import state
from homeport.platforms.k0rdent.service.holder import SetHolder, current, is_owned, states_of
from homeport.platforms.k0rdent.service.name import MULTI_FINALIZER, set_key
from homeport.platforms.k0rdent.service.plan import Plan
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.wake import spec_changed

CLUSTERS = "ClusterInReadyState"
REFERENCES = "ServicesReferencesValidation"
DEPENDENCIES = "ServicesDependencyValidation"
MULTI_VALID = "MultiClusterServiceDependencyValidation"
MULTI_READY = "MultiClusterServiceDependencyReady"
_SHOWN = 5
_RETRY_SECONDS = 30.0
_WORST = (state.FAILED, state.PENDING, state.PROVISIONING, state.DELETING, state.DEPLOYED, state.DELETED)


class MultiScope(Scope[MultiClusterService]):
    message = ""

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        if (kind, status) == (CLUSTERS, "True"):
            reason, message = "Succeeded", self.message
        return super().report(kind, status, reason, message, now)


class MultiClusterServiceReconciler(
    PausableReconciler[MultiClusterService, MultiScope], K0rdentReconciler[MultiClusterService, MultiScope]
):
    controller_name = "k0rdent-multiclusterservice"
    kind = MultiClusterService
    condition = CLUSTERS
    finalizer = MULTI_FINALIZER
    workers = 4

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._deployments = self.informers.get(ClusterDeployment).cache
        self._holder = SetHolder(self.client, self.informers, self.applier)
        self.controller.map(ClusterDeployment, self.all_keys, predicate=_labels_matter)
        self.controller.map(MultiClusterService, self.all_keys, predicate=spec_changed)
        self.controller.map(ServiceSet, self._of_set)
        for kind in (ServiceTemplate, ServiceTemplateChain):
            self.controller.map(kind, self._of_template)

    def _of_set(self, obj: ServiceSet) -> Iterable[Key]:
        """Its own, and those that wait for it."""
        if not obj.spec.multi_cluster_service:
            return []
        name = obj.spec.multi_cluster_service
        waiting = [key_of(each) for each in self.objects if name in each.spec.depends_on]
        return [Key("", name), *waiting]

    def _of_template(self, obj: Any) -> Iterable[Key]:
        return [key_of(each) for each in self.objects] if obj.metadata.namespace == SYSTEM_NAMESPACE else []

    def load(self, obj: MultiClusterService) -> MultiScope:
        return MultiScope(obj)

    def phases(self, scope: MultiScope) -> Sequence[Phase[MultiScope]]:
        if scope.deleting:
            return [self._remove, self.drop_finalizer]
        return [self.hold_finalizer, self._converge]

    # -- keeping -----------------------------------------------------------------------------------------------

    async def _converge(self, scope: MultiScope) -> Wait | None:
        obj, now = scope.object, rfc3339(self.clock.now())
        obj.status.observed_generation = obj.metadata.generation
        if wrong := self._problem(obj):
            return Wait("Failed", wrong, warning=True)
        clusters = self._matching(obj)
        gates = {key_of(each): self._gate(obj, each) for each in clusters}
        entries: list[MatchingCluster] = []
        states: list[list[ServiceState]] = []
        plans: list[Plan] = []
        shelf = self._holder.shelf(SYSTEM_NAMESPACE)
        for each in clusters:
            key = key_of(each)
            at = set_key(key.namespace, key.name, obj.metadata.name)
            made = self._holder.plan(obj.spec.service_spec, at, shelf, now)
            plans.append(made)
            if not gates[key]:
                await self._holder.hold(obj, key, obj.spec.service_spec, made, scope.key)
            found = states_of(self._holder.sets.get(at), made, now)
            states.append(found)
            entries.append(self._entry(scope, each, found, gates[key], made, now))
        await self._drop_others(obj, clusters)
        self._report_checks(scope, plans or [self._unmatched(obj, now)], [each for each in gates.values() if each], now)
        return self._summary(scope, entries, states)

    def _problem(self, obj: MultiClusterService) -> str:
        if obj.spec.service_spec.provider.self_management:
            return "spec.serviceSpec.provider.selfManagement: services of the management plane itself are not supported"
        try:
            from_label_selector(obj.spec.cluster_selector)
        except SelectorError as error:
            return f"spec.clusterSelector: {error}"
        return ""

    def _unmatched(self, obj: MultiClusterService, now: str) -> Plan:
        return self._holder.plan(obj.spec.service_spec, Key("", ""), self._holder.shelf(SYSTEM_NAMESPACE), now)

    def _matching(self, obj: MultiClusterService) -> list[ClusterDeployment]:
        """Those that are not being deleted. An empty selector matches none."""
        try:
            labels = from_label_selector(obj.spec.cluster_selector)
        except SelectorError:
            return []
        if labels.empty:
            return []
        found = [
            each
            for each in self._deployments
            if not each.metadata.deletion_timestamp and not each.spec.dry_run and labels.matches(each.metadata.labels)
        ]
        return sorted(found, key=lambda each: (each.metadata.namespace, each.metadata.name))

    def _gate(self, obj: MultiClusterService, cluster: ClusterDeployment) -> str:
        """What must be deployed in the cluster first; '' if nothing must."""
        for name in obj.spec.depends_on:
            other = self.objects.get(Key("", name))
            if other is None:
                return f"spec.dependsOn: MultiClusterService {name} does not exist"
            if cluster not in self._matching(other):
                continue
            held = self._holder.sets.get(set_key(cluster.metadata.namespace, cluster.metadata.name, name))
            if held is None or not held.status.deployed or held.status.observed_generation < held.metadata.generation:
                return f"waits for MultiClusterService {name}"
        return ""

    def _cycle(self, obj: MultiClusterService) -> str:
        graph = {each.metadata.name: list(each.spec.depends_on) for each in self.objects}
        cycle = find_cycle(graph, obj.metadata.name)
        return f"spec.dependsOn: a circle ({' -> '.join(cycle)}): remove one of them" if cycle else ""

    async def _drop_others(self, obj: MultiClusterService, clusters: Sequence[ClusterDeployment]) -> None:
        """Clusters that no longer match lose the services, unless the user wants to keep them."""
        kept = {key_of(each) for each in clusters}
        for held in self._own(obj):
            key = Key(held.metadata.namespace, held.spec.cluster)
            cluster = self._deployments.get(key)
            leaves = cluster is None or bool(cluster.metadata.deletion_timestamp)
            if key not in kept and (leaves or not obj.spec.keep_services_on_selector_mismatch):
                await self._holder.drop(held)

    def _own(self, obj: MultiClusterService) -> list[ServiceSet]:
        return [each for each in self._holder.sets if is_owned(each, obj)]

    # -- reporting ---------------------------------------------------------------------------------------------

    def _entry(
        self,
        scope: MultiScope,
        cluster: ClusterDeployment,
        states: Sequence[ServiceState],
        gate: str,
        made: Plan,
        now: str,
    ) -> MatchingCluster:
        meta, at = cluster.metadata, ClusterDeployment.__resource__
        held = self._holder.sets.get(set_key(meta.namespace, meta.name, scope.object.metadata.name))
        deployed = not gate and current(held, made) and all(state.is_done(each) for each in states)
        before = next(
            (
                each
                for each in scope.read.status.matching_clusters
                if (each.namespace, each.name) == (meta.namespace, meta.name)
            ),
            None,
        )
        same = before is not None and before.deployed == deployed and before.last_transition_time
        failed = any(each.state == state.FAILED for each in states)
        reason = "" if deployed else "WaitingForDependency" if gate else "Failed" if failed else "Progressing"
        return MatchingCluster(
            api_version=at.api_version,
            kind=at.kind,
            name=meta.name,
            namespace=meta.namespace,
            deployed=deployed,
            reason=reason,
            message="" if deployed else gate or state.told(states),
            last_transition_time=before.last_transition_time if same and before is not None else now,
        )

    def _report_checks(self, scope: MultiScope, plans: Sequence[Plan], gates: Sequence[str], now: str) -> None:
        missing = [
            f"MultiClusterService {name} does not exist"
            for name in scope.object.spec.depends_on
            if self.objects.get(Key("", name)) is None
        ]
        cycle = self._cycle(scope.object)
        for kind, wrong in (
            (REFERENCES, list(dict.fromkeys(one for each in plans for one in each.references))),
            (DEPENDENCIES, list(dict.fromkeys(one for each in plans for one in each.dependencies))),
            (MULTI_VALID, [*missing, *([cycle] if cycle else [])]),
            (MULTI_READY, list(dict.fromkeys(gates))),
        ):
            said = "; ".join(wrong[:_SHOWN])
            scope.report(kind, "False" if wrong else "True", "Failed" if wrong else "Succeeded", said, now)

    def _summary(
        self, scope: MultiScope, entries: list[MatchingCluster], states: Sequence[Sequence[ServiceState]]
    ) -> Wait | None:
        status = scope.object.status
        status.matching_clusters = entries
        status.services = state.settled(worst(states), status.services)
        status.services_upgrade_paths = self._unmatched(scope.object, "").upgrades
        ready = sum(each.deployed for each in entries)
        scope.message = f"{ready}/{len(entries)}"
        if ready == len(entries):
            return None
        open_ = [each for each in entries if not each.deployed]
        lines = [f"{each.namespace}/{each.name}: {each.message or each.reason}" for each in open_[:_SHOWN]]
        more = [f"... ({len(open_) - _SHOWN} more)"] if len(open_) > _SHOWN else []
        reason = "Failed" if any(each.reason == "Failed" for each in open_) else "Progressing"
        return Wait(reason, f"{scope.message}: {'; '.join([*lines, *more])}", after=_RETRY_SECONDS)

    # -- removing ----------------------------------------------------------------------------------------------

    async def _remove(self, scope: MultiScope) -> Wait | None:
        sets = self._own(scope.object)
        for held in sets:
            await self._holder.drop(held)
        if not sets:
            return None
        names = ", ".join(f"{each.metadata.namespace}/{each.spec.cluster}" for each in sets[:_SHOWN])
        return Wait("Deleting", f"services are removed from {len(sets)} clusters: {names}", after=_RETRY_SECONDS)


def worst(states: Sequence[Sequence[ServiceState]]) -> list[ServiceState]:
    """Each service in the worst state that it has in any cluster."""
    found: dict[tuple[str, str], ServiceState] = {}
    for each in states:
        for one in each:
            held = found.get((one.namespace, one.name))
            if held is None or _WORST.index(one.state) < _WORST.index(held.state):
                found[one.namespace, one.name] = one
    return list(found.values())


def _labels_matter(old: ClusterDeployment | None, new: ClusterDeployment | None) -> bool:
    if old is None or new is None:
        return True
    return (old.metadata.labels, bool(old.metadata.deletion_timestamp), old.spec.dry_run) != (
        new.metadata.labels,
        bool(new.metadata.deletion_timestamp),
        new.spec.dry_run,
    )
