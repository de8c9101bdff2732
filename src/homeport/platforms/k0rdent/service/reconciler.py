"""ServiceSet: one ClusterAddon for each service of a cluster, in order, and what they report.

It decides by what the ClusterAddons and the other ServiceSets of the cluster are now.
"""

from __future__ import annotations

from collections.abc import Sequence

from homeport.addons.scope import INSTALLED
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import (
    ClusterDeployment,
    ServiceSet,
    ServiceTemplate,
    StateManagementProvider,
)
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.api.k0rdent.v1beta1.part import ObjectReference
from homeport.api.k0rdent.v1beta1.service import ServiceState
from homeport.capi.component import Setup
from homeport.capi.reconciler import PausableReconciler
from homeport.client.errors import BadRequest, Forbidden, Invalid, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.helm.errors import SourceError
from homeport.machinery import condition
from homeport.platforms.k0rdent.deployment.neighbour import owns
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.reconciler import K0rdentReconciler
from homeport.platforms.k0rdent.service import state
from homeport.platforms.k0rdent.service.conflict import Rival, rival_of
from homeport.platforms.k0rdent.service.content import Contents, home_of, place_of_sources
from homeport.platforms.k0rdent.service.name import PAUSED_ANNOTATION, SET_FINALIZER
from homeport.platforms.k0rdent.service.render import addon_name, render_addon, render_copy
from homeport.platforms.k0rdent.service.scope import COLLECTED, PROFILE, SERVICES, SetScope
from homeport.platforms.k0rdent.service.settings import DRY_RUN, ONE_TIME
from homeport.platforms.k0rdent.service.step import constraint_problem
from homeport.platforms.k0rdent.source import SECRET, Sources
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

_LOOK_SECONDS = 60.0
_RETRY_SECONDS = 30.0


class ServiceSetReconciler(PausableReconciler[ServiceSet, SetScope], K0rdentReconciler[ServiceSet, SetScope]):
    controller_name = "k0rdent-serviceset"
    kind = ServiceSet
    condition = SERVICES
    finalizer = SET_FINALIZER
    workers = 16

    def __init__(self, setup: Setup, sources: Sources) -> None:
        super().__init__(setup.manager)
        self._addons = self.informers.get(ClusterAddon).cache
        self._templates = self.informers.get(ServiceTemplate).cache
        self._deployments = self.informers.get(ClusterDeployment).cache
        self._clusters = self.informers.get(Cluster).cache
        self._providers = self.informers.get(StateManagementProvider).cache
        self._contents = Contents(sources)

    def load(self, obj: ServiceSet) -> SetScope:
        name = obj.spec.provider.name
        provider = self._providers.get(Key("", name)) if name else None
        own = {
            each.metadata.name: each
            for each in self._addons.list(obj.metadata.namespace)
            if any(ref.uid == obj.metadata.uid for ref in each.metadata.owner_references)
        }
        others = [
            each
            for each in self.objects.list(obj.metadata.namespace)
            if each.spec.cluster == obj.spec.cluster and each.metadata.uid != obj.metadata.uid
        ]
        suspended = PAUSED_ANNOTATION in obj.metadata.annotations
        return SetScope(obj, own, others, paused=suspended or (provider is not None and provider.spec.suspend))

    def phases(self, scope: SetScope) -> Sequence[Phase[SetScope]]:
        if scope.deleting:
            return [self._remove, self.drop_finalizer]
        return [self.hold_finalizer, self._converge]

    # -- keeping -----------------------------------------------------------------------------------------------

    async def _converge(self, scope: SetScope) -> Wait | None:
        obj, status = scope.object, scope.object.status
        status.observed_generation = obj.metadata.generation
        status.provider.ready, status.provider.suspended = not scope.paused, scope.paused
        if wait := self._await_cluster(scope):
            return wait
        states = await self._bring(scope)
        if not scope.paused:
            states += await self._prune(scope)
        now = self._now()
        scope.report(PROFILE, "True", "Succeeded", "", now)
        scope.report(COLLECTED, "True", "Succeeded", "", now)
        status.services = states
        status.deployed = all(state.is_done(each) for each in states)
        scope.message = state.count(states)
        if scope.paused:
            return Wait("Paused", f"{state.count(states)}: paused: services are not changed", after=_LOOK_SECONDS)
        if status.deployed:
            scope.timer = Wait("Resync", after=_LOOK_SECONDS * 10, quiet=True)
            return None
        failed = any(each.state == state.FAILED for each in states)
        return Wait("Failed" if failed else "Progressing", state.summary(states), after=_RETRY_SECONDS)

    def _await_cluster(self, scope: SetScope) -> Wait | None:
        obj = scope.object
        if obj.spec.provider.self_management:
            text = "spec.provider.selfManagement: services of the management plane itself are not supported"
            scope.report(PROFILE, "False", "Failed", text, self._now())
            return Wait("Failed", text, warning=True)
        key = Key(obj.metadata.namespace, obj.spec.cluster)
        deployment = self._deployments.get(key)
        if deployment is None:
            text = f"spec.cluster: ClusterDeployment {key} does not exist: create it"
            scope.report(PROFILE, "False", "Failed", text, self._now())
            return Wait("Failed", text)
        at = ClusterDeployment.__resource__
        scope.cluster = self._cluster(deployment)
        if not scope.cluster:
            text = f"the Cluster of ClusterDeployment {key} does not exist yet"
            scope.report(PROFILE, "False", "Progressing", text, self._now())
            return Wait("Progressing", text)
        scope.kubernetes = deployment.status.k8s_version
        obj.status.cluster = ObjectReference(
            api_version=at.api_version, kind=at.kind, name=key.name, namespace=key.namespace
        )
        return None

    def _cluster(self, deployment: ClusterDeployment) -> str:
        """The name of the Cluster, which the chart of a user's template may choose; '' if there is none yet."""
        meta = deployment.metadata
        names = [each.metadata.name for each in self._clusters.list(meta.namespace) if owns(deployment, each)]
        return meta.name if meta.name in names else min(names, default="")

    async def _bring(self, scope: SetScope) -> list[ServiceState]:
        """One after the other: a service begins when the one before it is installed."""
        states: list[ServiceState] = []
        blocked = "syncMode is DryRun: nothing is changed" if scope.settings.sync_mode == DRY_RUN else ""
        for service in scope.object.spec.services:
            rival = rival_of(scope.object, service, scope.others)
            found = await self._service(scope, service, rival, blocked)
            states.append(found)
            if blocked or found.state in (state.DELETING, state.DELETED):
                continue
            if rival is not None and rival.wins:
                if scope.settings.stop_on_conflict:
                    blocked = f"service {service.namespace}/{service.name} has a conflict"
            elif not self._is_past(scope, service, found):
                blocked = f"waits for service {service.namespace}/{service.name}"
        return states

    def _is_past(self, scope: SetScope, service: ServiceWithValues, found: ServiceState) -> bool:
        """Whether the next service may begin."""
        if found.state == state.DEPLOYED or (found.state == state.FAILED and scope.settings.continue_on_error):
            return True
        addon = scope.addon(service)
        if addon is None or addon.status.observed_generation < addon.metadata.generation:
            return False
        return condition.is_true(addon.status.conditions, INSTALLED)

    async def _service(
        self, scope: SetScope, service: ServiceWithValues, rival: Rival | None, blocked: str
    ) -> ServiceState:
        template = self._templates.get(Key(home_of(scope.object), service.template))
        if service.helm_action == "Uninstall":
            return await self._uninstalled(scope, service, template)
        problem = ""
        if rival is not None and rival.wins:
            problem = rival.message
            await self._yield(scope, service)
        elif not blocked:
            problem = await self._hold(scope, service, template, adopt=rival is not None)
        addon = None if rival is not None and rival.wins else scope.addon(service)
        found, said = state.judge(addon)
        if problem:
            found, said = state.FAILED, problem
        elif blocked and addon is None:
            found, said = state.PENDING, blocked
        elif found == state.DEPLOYED and not self._is_current(scope, service, blocked):
            found, said = state.PROVISIONING, blocked
        return self._state(scope, service, template, found, said, addon)

    def _is_current(self, scope: SetScope, service: ServiceWithValues, blocked: str) -> bool:
        """Whether the ClusterAddon in the cache is that of this service as it is now."""
        if blocked:
            before = state.by_place(scope.read.status.services).get((service.namespace, service.name))
            return before is not None and (before.template, before.version) == (service.template, service.version)
        return addon_name(scope.object, service.namespace, service.name) in scope.shown

    def _state(
        self,
        scope: SetScope,
        service: ServiceWithValues,
        template: ServiceTemplate | None,
        found: str,
        said: str,
        addon: ClusterAddon | None,
    ) -> ServiceState:
        before = state.by_place(scope.read.status.services).get((service.namespace, service.name))
        return state.render_state(service, state.type_of(template), found, said, addon, before, self._now())

    async def _hold(
        self, scope: SetScope, service: ServiceWithValues, template: ServiceTemplate | None, *, adopt: bool
    ) -> str:
        """Applies the ClusterAddon of a service. Returns why that can't be; '' if it could."""
        owner, name = scope.object, addon_name(scope.object, service.namespace, service.name)
        cached = scope.own.get(name)
        if (
            scope.settings.sync_mode == ONE_TIME
            and cached is not None
            and condition.is_true(cached.status.conditions, INSTALLED)
        ):
            scope.shown.add(name)
            return ""
        if template is None:
            return f'ServiceTemplate "{service.template}" does not exist in namespace {home_of(owner)}: create it'
        if wrong := _problem(service.template, template, scope.kubernetes):
            return wrong
        try:
            original = self._templates.get(Key(SYSTEM_NAMESPACE, service.template))
            place = place_of_sources(template, original)
            content = await self._contents.find(owner, service, template, name, place)
            for copy, files in content.copies.items():
                await self.applier.hold(scope.key, render_copy(owner, copy, files), SECRET)
            body = render_addon(
                owner, service, template, content, scope.settings, scope.cluster, adopt=adopt, paused=scope.paused
            )
            kind = ClusterAddon.__resource__
            if await self.applier.hold(scope.key, body, kind, cached=cached, watched=True):
                scope.shown.add(name)
        except SourceError as error:
            return str(error)
        except (Invalid, BadRequest, Forbidden) as error:
            return f"the API server refuses it: {error}"
        return ""

    # -- removing ----------------------------------------------------------------------------------------------

    async def _uninstalled(
        self, scope: SetScope, service: ServiceWithValues, template: ServiceTemplate | None
    ) -> ServiceState:
        addon = scope.addon(service)
        if addon is not None and not scope.paused:
            await self._delete(addon)
        found = state.DELETED if addon is None else state.DELETING
        return self._state(scope, service, template, found, "", None)

    async def _yield(self, scope: SetScope, service: ServiceWithValues) -> None:
        """Another ServiceSet has the service now: what is installed stays for it to adopt."""
        addon = scope.addon(service)
        if addon is None or addon.metadata.deletion_timestamp or scope.paused:
            return
        if addon.spec.deletion_policy != "Orphan":
            key = Key(addon.metadata.namespace, addon.metadata.name)
            await self.client.patch(ClusterAddon, key, MergePatch({"spec": {"deletionPolicy": "Orphan"}}), self._write)
        await self._delete(addon)

    async def _prune(self, scope: SetScope) -> list[ServiceState]:
        """Services that are no longer listed are removed, the last one first."""
        listed = {addon_name(scope.object, each.namespace, each.name) for each in scope.object.spec.services}
        gone = [each for name, each in scope.own.items() if name not in listed]
        return await self._withdraw(scope, gone)

    async def _withdraw(self, scope: SetScope, addons: Sequence[ClusterAddon]) -> list[ServiceState]:
        """Those that are being removed. The next one follows when the one before it is gone."""
        before = state.by_place(scope.read.status.services)
        order = list(before)
        places = {addon_name(scope.object, *place): place for place in order}
        rank = {name: order.index(place) for name, place in places.items()}
        left = sorted(addons, key=lambda each: rank.get(each.metadata.name, -1), reverse=True)
        if left:
            await self._delete(left[0])
        states = []
        for each in left:
            held = before.get(places.get(each.metadata.name, ("", "")))
            if held is None:
                continue
            service = ServiceWithValues(
                name=held.name, namespace=held.namespace, template=held.template, version=held.version
            )
            said = state.judge(each)[1] if each.metadata.deletion_timestamp else ""
            states.append(state.render_state(service, held.type, state.DELETING, said, None, held, self._now()))
        return states

    async def _remove(self, scope: SetScope) -> Wait | None:
        """The add-ons of a cluster that is being deleted go at once; otherwise one after the other."""
        obj = scope.object
        if not scope.own:
            return None
        deployment = self._deployments.get(Key(obj.metadata.namespace, obj.spec.cluster))
        if deployment is None:
            for each in scope.own.values():
                await self._delete(each)
            states: list[ServiceState] = []
        else:
            states = await self._withdraw(scope, list(scope.own.values()))
        obj.status.services, obj.status.deployed = states, False
        said = "; ".join(f"{each.namespace}/{each.name}: {each.failure_message or each.state}" for each in states)
        text = f"{len(scope.own)} services are being removed" + (f": {said}" if said else "")
        return Wait("Deleting", text, after=_RETRY_SECONDS)

    async def _delete(self, addon: ClusterAddon) -> None:
        if addon.metadata.deletion_timestamp:
            return
        try:
            key = Key(addon.metadata.namespace, addon.metadata.name)
            await self.client.delete(ClusterAddon, key, uid=addon.metadata.uid)
        except NotFound:
            return

    def _now(self) -> str:
        return rfc3339(self.clock.now())


def _problem(name: str, template: ServiceTemplate, kubernetes: str) -> str:
    """Why nothing can be made of the template; '' if it can be used."""
    if not template.status.valid:
        why = template.status.validation_error or "it is being read"
        return f"ServiceTemplate {name} is not valid: {why}"
    return constraint_problem(template, kubernetes)
