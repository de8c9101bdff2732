"""ManagementAddon: an add-on of the cluster that the controllers run in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.addons.own import OwnCluster
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import AddonDefinition, ButlerConfig, ManagementAddon
from homeport.api.meta import Resource
from homeport.capi.component import Setup
from homeport.client.protocol import Key, Query
from homeport.machinery import condition
from homeport.platforms.butler.addon.guard import MANAGEMENT_LABEL, Guard, Unguarded
from homeport.platforms.butler.addon.offer import NoOffer, Offer, find_offer, is_built_in
from homeport.platforms.butler.addon.render import render_defined
from homeport.platforms.butler.addon.state import put_child, verdicts, wait_of, waiting_phase
from homeport.platforms.butler.name import CONFIG_NAME, FIELD_MANAGER, SYSTEM_NAMESPACE, finalizer
from homeport.platforms.butler.normal.addon import AddonRequest, normal_management_addon
from homeport.platforms.butler.normal.addons import AddonModel
from homeport.platforms.butler.team.verdict import World
from homeport.platforms.butler.tenant.addon import addon_requests
from homeport.runtime.cache import key_of
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

Json = dict[str, Any]
CLUSTER = Key(SYSTEM_NAMESPACE, "management")  # as messages of the engine call it
_POD = Resource("", "v1", "Pod", "pods")
_PREFIX = "management-"  # of the names under which the engine knows them: no ClusterAddon has the same
_LOOK_SECONDS = 10.0
_RESYNC_SECONDS = 600.0
_WAITS_FOR_PODS = ("WaitingForObjects", "Timeout", "ObjectsFailed")
_SHOWN = 3


class ManagementScope(Scope[ManagementAddon]):
    def __init__(self, addon: ManagementAddon) -> None:
        super().__init__(addon)
        self.spec: Json = {}  # of the ClusterAddon that would install it
        self.child: ClusterAddon | None = None

    @property
    def engine_key(self) -> Key:
        return Key(SYSTEM_NAMESPACE, f"{_PREFIX}{self.key.name}")


class ManagementAddonReconciler(ObjectReconciler[ManagementAddon, ManagementScope]):
    controller_name = "butler-managementaddon"
    kind = ManagementAddon
    field_manager = FIELD_MANAGER
    finalizer = finalizer("ManagementAddon")
    workers = 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        environment, informers = setup.environment, setup.manager.informers
        self._embedded = environment.embedded
        self._guard = Guard(self.client, embedded=self._embedded)
        self._definitions = informers.get(AddonDefinition).cache
        self._configs = informers.get(ButlerConfig).cache
        self._own = OwnCluster(setup.capi, environment.charts, CLUSTER, self._wake)
        for kind in (AddonDefinition, ButlerConfig):
            self.controller.map(kind, self.all_keys, predicate=_spec_changed)
        self.controller.map(ManagementAddon, self._others)
        if setup.runs(self.controller_name):
            setup.manager.job(self._own.run)
            setup.manager.job(self._prepare)

    async def _prepare(self) -> None:
        """At the start: what is written from now on has been checked."""
        try:
            await self._guard.since()
        except Unguarded:
            return  # each ManagementAddon reports it

    def _wake(self, addon: Key) -> None:
        if addon.name.startswith(_PREFIX):
            self.controller.wake(Key("", addon.name.removeprefix(_PREFIX)))

    def predicate(self, old: ManagementAddon | None, new: ManagementAddon | None) -> bool:
        return old is None or new is None or _written(old) != _written(new)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._own.forget(Key(SYSTEM_NAMESPACE, f"{_PREFIX}{key.name}"))

    def load(self, obj: ManagementAddon) -> ManagementScope:
        return ManagementScope(obj)

    def phases(self, scope: ManagementScope) -> Sequence[Phase[ManagementScope]]:
        if scope.deleting:
            return [self._release, self.drop_finalizer]
        return [self.hold_finalizer, self._reported_on]

    # -- an add-on that should exist ---------------------------------------------------------------------------

    async def _reported_on(self, scope: ManagementScope) -> Wait | None:
        status, now = scope.object.status, rfc3339(self.clock.now())
        status.observed_generation = scope.object.metadata.generation
        wait = await self._decide(scope)
        if wait is None:
            wait = await self._converge(scope)
        else:
            status.phase = waiting_phase(status, wait.reason)
        for each in verdicts(scope.child, wait)[1:]:  # the first is about a connection
            scope.report(each.kind, each.status, each.reason, each.message, now)
        status.message = wait.message if wait is not None else ""
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        return wait

    async def _decide(self, scope: ManagementScope) -> Wait | None:
        """What is to be installed; a Wait if that can't be said or done yet."""
        request = normal_management_addon(scope.object).model
        assert request is not None
        if request.paused:
            return Wait("Paused", "spec.paused is true: the add-on stays as it is")
        try:
            since = await self._guard.since()
        except Unguarded as why:
            return Wait("NotGuarded", f"nothing is installed: {why}", after=60.0, warning=True)
        if _created(scope.object) < since:
            text = "it is older than the check of who may write ManagementAddons: delete it, and create it again"
            return Wait("NotAdmitted", text, warning=True)
        found = find_offer(request.addon, self._definitions)
        if isinstance(found, NoOffer):
            return Wait("UnknownAddon", f"spec.addon: {found.message}", warning=True)
        return self._refusal(found, since) or self._dependencies(scope, found) or self._render(scope, request, found)

    def _refusal(self, offer: Offer, since: float) -> Wait | None:
        """An AddonDefinition of a user counts if only those who may do everything could write it."""
        if offer.definition is None:
            return None
        own = next(each for each in self._definitions if each.metadata.name == offer.name and not is_built_in(each))
        if MANAGEMENT_LABEL not in own.metadata.labels:
            text = f'label it with {MANAGEMENT_LABEL}: "true", which needs all rights'
            return Wait(
                "NotAdmitted", f"spec.addon: AddonDefinition {offer.name} is for tenant clusters: {text}", warning=True
            )
        if _created(own) < since:
            text = f"AddonDefinition {offer.name} is older than the check of who may write it"
            return Wait("NotAdmitted", f"spec.addon: {text}: delete it, and create it again", warning=True)
        return None

    def _dependencies(self, scope: ManagementScope, offer: Offer) -> Wait | None:
        for name in offer.depends_on:
            found = [each for each in self.objects if name in (each.metadata.name, each.spec.addon)]
            if not found:
                text = f'AddonDefinition {offer.name} needs "{name}": create a ManagementAddon for it'
                return Wait("DependencyNotFound", text)
            if not any(condition.is_true(each.status.conditions, "Ready") for each in found):
                return Wait("WaitingForDependency", f"ManagementAddon {found[0].metadata.name} is not ready")
        return None

    def _render(self, scope: ManagementScope, request: AddonRequest, offer: Offer) -> Wait | None:
        if offer.definition is not None:
            scope.spec = render_defined(offer.definition, request.version, request.values)
            return None
        addresses = World(config=self._configs.get(Key("", CONFIG_NAME))).settings.load_balancer
        model = AddonModel(request.addon, offer.entry, request.version, dict(request.values))
        rendered = next(iter(addon_requests([model], addresses)), None)
        if rendered is None:
            text = f"{request.addon} needs addresses: set spec.platform.metalLBPool of ButlerConfig {CONFIG_NAME}"
            return Wait("InvalidConfiguration", f"spec.addon: {text}", warning=True)
        parameters = rendered.parameters if offer.entry != "cilium" else {}  # this cluster may have kube-proxy
        given = {"version": rendered.version, "parameters": parameters, "values": rendered.values}
        scope.spec = {"addon": rendered.addon, **{name: value for name, value in given.items() if value}}
        return None

    async def _converge(self, scope: ManagementScope) -> Wait | None:
        status, generation = scope.object.status, scope.object.metadata.generation
        child = await self._own.converge(scope.engine_key, generation, scope.spec)
        scope.child = child
        put_child(status, child)
        status.last_attempted_version = child.status.target_version
        wait = wait_of(child)
        if wait is not None and self._embedded and wait.reason in _WAITS_FOR_PODS:
            stuck = await self._stuck(child)
            if stuck:
                return Wait("NoNodes", stuck, after=_RESYNC_SECONDS)
        return None if wait is None else Wait(wait.reason, wait.message, after=_LOOK_SECONDS, warning=wait.warning)

    async def _stuck(self, child: ClusterAddon) -> str:
        """Which of its Pods can never run here; '' if none."""
        found = await self.client.list(_POD, Query(namespace=child.status.release.namespace))
        lines = []
        for pod in found.items:
            scheduled = condition.find((pod.get("status") or {}).get("conditions") or [], "PodScheduled") or {}
            if scheduled.get("reason") == "Unschedulable":
                lines.append(f"Pod {pod.namespace}/{pod.name}: {scheduled.get('message')}")
        if not lines:
            return ""
        more = [f"... ({len(lines) - _SHOWN} more)"] if len(lines) > _SHOWN else []
        head = (
            "its objects are installed, but this plane has no Nodes and can't run its Pods: run the controllers on a "
            "Kubernetes cluster (homeport up --kubeconfig)"
        )
        return "\n".join([head, *lines[:_SHOWN], *more])

    # -- an add-on that should not exist -----------------------------------------------------------------------

    async def _release(self, scope: ManagementScope) -> Wait | None:
        status = scope.object.status
        known = status.helm_release
        status.phase = "Uninstalling"
        if not self.holds_finalizer(scope):
            return None
        release = (known.namespace, known.name) if known is not None else ("", "")
        wait = await self._own.remove(scope.engine_key, release)
        if wait is None:
            return None
        text = f"the add-on is being removed: {wait.message}"
        return Wait("Deleting", text, after=wait.after or _LOOK_SECONDS, warning=wait.warning)

    # -- whom a change concerns --------------------------------------------------------------------------------

    def _others(self, addon: ManagementAddon) -> Iterable[Key]:
        """They may wait for it."""
        name = addon.metadata.name
        return [
            key_of(each) for each in self.objects if each.metadata.name != name and not each.status.installed_version
        ]


def _created(obj: Any) -> float:
    return parse_time(obj.metadata.creation_timestamp) if obj.metadata.creation_timestamp else 0.0


def _written(addon: ManagementAddon) -> Any:
    meta = addon.metadata
    return meta.generation, meta.deletion_timestamp, meta.annotations


def _spec_changed(old: Any, new: Any) -> bool:
    return old is None or new is None or _seen(old) != _seen(new)


def _seen(obj: Any) -> Any:
    return obj.metadata.generation, obj.metadata.labels
