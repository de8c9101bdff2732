"""TenantAddon: an add-on of a tenant cluster, brought there by a ClusterAddon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import AddonDefinition, ButlerConfig, Team, TenantAddon, TenantCluster
from homeport.capi.component import Setup
from homeport.client.errors import BadRequest, Forbidden, Invalid, NotFound
from homeport.client.protocol import Key
from homeport.platforms.butler.addon.offer import NoOffer, Offer, find_offer
from homeport.platforms.butler.addon.render import OWNER_UID_LABEL, child_name, owner_of, render_child
from homeport.platforms.butler.addon.state import DELETING, put_child, verdicts, wait_of, waiting_phase
from homeport.platforms.butler.name import CONFIG_NAME, FIELD_MANAGER, finalizer
from homeport.platforms.butler.normal.addon import AddonRequest, normal_tenant_addon
from homeport.platforms.butler.normal.team import normal_team
from homeport.platforms.butler.team.rule import addon_refusal, chart_refusal
from homeport.platforms.butler.team.verdict import World
from homeport.platforms.butler.tenant.name import addon_name
from homeport.platforms.butler.tenant.shard import tenant_shard
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler
from homeport.runtime.wake import spec_changed

_LOOK_SECONDS = 10.0
_REFUSED_SECONDS = 60.0


class AddonScope(Scope[TenantAddon]):
    def __init__(self, addon: TenantAddon, tenant: TenantCluster | None) -> None:
        super().__init__(addon)
        self.tenant = tenant
        self.request: AddonRequest | None = None
        self.offer: Offer | None = None
        self.depends_on: list[str] = []
        self.child: ClusterAddon | None = None

    @property
    def child_key(self) -> Key:
        """Of the ClusterAddon; '' as long as the cluster has no namespace."""
        namespace = self.tenant.status.tenant_namespace if self.tenant is not None else ""
        return Key(namespace, child_name(self.object.spec.cluster_ref.name, self.object.metadata.name))


class TenantAddonReconciler(ObjectReconciler[TenantAddon, AddonScope]):
    controller_name = "butler-tenantaddon"
    kind = TenantAddon
    field_manager = FIELD_MANAGER
    finalizer = finalizer("TenantAddon")

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        informers = setup.manager.informers
        self._tenants = informers.get(TenantCluster).cache
        self._children = informers.get(ClusterAddon).cache
        self._definitions = informers.get(AddonDefinition).cache
        self._teams = informers.get(Team).cache
        self._configs = informers.get(ButlerConfig).cache
        self.controller.map(ClusterAddon, lambda child: _present(owner_of(child.metadata.annotations)))
        self.controller.map(TenantCluster, self._of_cluster)
        self.controller.map(AddonDefinition, self.all_keys, predicate=spec_changed)
        self.controller.map(TenantAddon, self._neighbours, predicate=spec_changed)
        for kind in (Team, ButlerConfig):
            self.controller.map(kind, self.all_keys, predicate=spec_changed)

    def shard_of(self, key: Key, obj: TenantAddon | None) -> str | None:
        return (
            tenant_shard(self._tenants.get(Key(key.namespace, obj.spec.cluster_ref.name))) if obj is not None else None
        )

    def predicate(self, old: TenantAddon | None, new: TenantAddon | None) -> bool:
        return old is None or new is None or _written(old) != _written(new)

    def load(self, obj: TenantAddon) -> AddonScope:
        meta = obj.metadata
        scope = AddonScope(obj, self._tenants.get(Key(meta.namespace, obj.spec.cluster_ref.name)))
        scope.child = self._child(scope)
        return scope

    def _child(self, scope: AddonScope) -> ClusterAddon | None:
        found = self._children.get(scope.child_key) if scope.child_key.namespace else None
        if found is None:  # the TenantCluster may be gone before us
            uid = scope.object.metadata.uid
            found = next((each for each in self._children if each.metadata.labels.get(OWNER_UID_LABEL) == uid), None)
        return found

    def phases(self, scope: AddonScope) -> Sequence[Phase[AddonScope]]:
        if scope.deleting:
            return [self._release, self.drop_finalizer]
        return [self.hold_finalizer, self._reported_on]

    def expected(self, scope: AddonScope, error: Exception) -> Wait | None:
        """What the API server refuses stays refused until somebody changes something."""
        if not isinstance(error, Invalid | Forbidden | BadRequest):
            return None
        scope.object.status.phase, scope.object.status.message = "Failed", str(error)
        return Wait("Refused", str(error), after=_REFUSED_SECONDS, warning=True)

    # -- an add-on that should exist ---------------------------------------------------------------------------

    async def _reported_on(self, scope: AddonScope) -> Wait | None:
        """Every condition tells the same story as Ready."""
        status, now = scope.object.status, rfc3339(self.clock.now())
        status.observed_generation = scope.object.metadata.generation
        before = status.phase
        wait = self._decide(scope)
        if wait is None:
            wait = await self._converge(scope)
        else:
            status.phase = waiting_phase(status, wait.reason)
        for each in verdicts(scope.child, wait):
            scope.report(each.kind, each.status, each.reason, each.message, now)
        status.message = wait.message if wait is not None else ""
        if status.phase != before or status.last_transition_time is None:
            status.last_transition_time = now
        return wait

    def _decide(self, scope: AddonScope) -> Wait | None:
        """What is to be installed; a Wait if that can't be said or done yet."""
        normal = normal_tenant_addon(scope.object)
        if normal.model is None:
            return Wait("InvalidConfiguration", normal.text, warning=True)
        scope.request = normal.model
        return self._find(scope, normal.model) or self._cluster(scope) or self._dependencies(scope, normal.model)

    def _find(self, scope: AddonScope, request: AddonRequest) -> Wait | None:
        if request.addon:
            offer = find_offer(request.addon, self._definitions)
            if isinstance(offer, NoOffer):
                return Wait("UnknownAddon", f"spec.addon: {offer.message}", warning=True)
            scope.offer = offer
        refused = self._refusal(scope.key.namespace, request)
        return Wait("ValidationFailed", refused, warning=True) if refused else None

    def _refusal(self, namespace: str, request: AddonRequest) -> str:
        """The namespace of a team has its name."""
        team = self._teams.get(Key("", namespace))
        model = normal_team(team).model if team is not None else None
        if model is None:
            return ""
        settings = World(config=self._configs.get(Key("", CONFIG_NAME))).settings
        limits, helm = model.limits.under(settings.limits), request.helm
        if helm is not None:
            return chart_refusal(namespace, limits, helm.chart, helm.repository)
        refused = addon_refusal(namespace, limits, request.addon)
        return f"spec.addon: {refused}" if refused else ""

    def _cluster(self, scope: AddonScope) -> Wait | None:
        name, tenant = scope.object.spec.cluster_ref.name, scope.tenant
        if tenant is None:
            where = f"{scope.key.namespace}/{name}"
            return Wait(
                "ClusterNotFound", f"spec.clusterRef: TenantCluster {where} does not exist: create it", warning=True
            )
        if tenant.metadata.deletion_timestamp:
            return Wait("ClusterDeleting", f"TenantCluster {name} is being deleted")
        if not tenant.status.tenant_namespace:
            return Wait("WaitingForCluster", f"TenantCluster {name} is {tenant.status.phase or 'Pending'}")
        return None

    def _dependencies(self, scope: AddonScope, request: AddonRequest) -> Wait | None:
        """Names of ClusterAddons. A dependency is the name of a TenantAddon, or of an add-on of the catalogue."""
        for name in request.depends_on:
            found = self._provider_of(scope, name)
            if not found:
                return Wait("DependencyNotFound", f"spec.dependsOn: {_missing(request, name)}")
            scope.depends_on.append(found)
        for name in scope.offer.depends_on if scope.offer is not None else ():
            found = self._provider_of(scope, name)
            if not found:
                return Wait("DependencyNotFound", f"AddonDefinition {request.addon} needs {_missing(request, name)}")
            scope.depends_on.append(found)
        scope.depends_on = list(dict.fromkeys(scope.depends_on))
        return None

    def _provider_of(self, scope: AddonScope, name: str) -> str:
        """The ClusterAddon that a dependency stands for; '' if the cluster has none."""
        cluster, namespace = scope.object.spec.cluster_ref.name, scope.child_key.namespace
        others = [each for each in self.objects.list(scope.key.namespace) if each.spec.cluster_ref.name == cluster]
        for each in others:
            if each.metadata.uid != scope.object.metadata.uid and name in (each.metadata.name, each.spec.addon):
                return child_name(cluster, each.metadata.name)
        own = find_offer(name, self._definitions)
        entry = own.entry if isinstance(own, Offer) else ""
        candidate = addon_name(cluster, entry or name)
        return candidate if self._children.get(Key(namespace, candidate)) is not None else ""

    async def _converge(self, scope: AddonScope) -> Wait | None:
        assert scope.request is not None
        child, uid = scope.child, scope.object.metadata.uid
        if child is not None and child.metadata.labels.get(OWNER_UID_LABEL) != uid:
            scope.object.status.phase = waiting_phase(scope.object.status, "NameTaken")
            text = f"ClusterAddon {key_of(child)} belongs to somebody else: give this TenantAddon another name"
            return Wait("NameTaken", text, warning=True)
        body = render_child(
            scope.object,
            scope.request,
            scope.offer,
            scope.child_key.namespace,
            scope.depends_on,
            outside=self._teams.get(Key("", scope.key.namespace)) is not None,
        )
        try:
            made = await self.client.apply(body, self._write, kind=ClusterAddon.__resource__, force=True)
        except NotFound:
            return Wait(
                "WaitingForCluster", f"namespace {scope.child_key.namespace} does not exist yet", after=_LOOK_SECONDS
            )
        if child is None or made.metadata.get("generation") != child.metadata.generation:
            child = msgspec.convert(dict(made), ClusterAddon, strict=False)
        scope.child = child
        put_child(scope.object.status, child)
        return wait_of(child)

    # -- an add-on that should not exist -----------------------------------------------------------------------

    async def _release(self, scope: AddonScope) -> Wait | None:
        child = scope.child
        scope.object.status.phase = DELETING
        if child is None or child.metadata.labels.get(OWNER_UID_LABEL) != scope.object.metadata.uid:
            return None
        if not child.metadata.deletion_timestamp:
            try:
                await self.client.delete(ClusterAddon, key_of(child), uid=child.metadata.uid)
            except NotFound:
                return None
        waits = wait_of(child)
        more = f": {waits.message}" if waits is not None and waits.message and child.metadata.deletion_timestamp else ""
        return Wait("Deleting", f"the add-on is being removed from the cluster{more}", after=_LOOK_SECONDS)

    # -- whom a change concerns --------------------------------------------------------------------------------

    def _of_cluster(self, tenant: TenantCluster) -> Iterable[Key]:
        return [
            key_of(each)
            for each in self.objects.list(tenant.metadata.namespace)
            if each.spec.cluster_ref.name == tenant.metadata.name
        ]

    def _neighbours(self, addon: TenantAddon) -> Iterable[Key]:
        """They may wait for it."""
        return [
            key_of(each)
            for each in self.objects.list(addon.metadata.namespace)
            if each.spec.cluster_ref.name == addon.spec.cluster_ref.name and each.metadata.uid != addon.metadata.uid
        ]


def _missing(request: AddonRequest, name: str) -> str:
    return f'"{name}", which cluster {request.cluster} does not have: create a TenantAddon for it'


def _present(key: Key | None) -> Iterable[Key]:
    return () if key is None else (key,)


def _written(addon: TenantAddon) -> Any:
    meta = addon.metadata
    return meta.generation, meta.deletion_timestamp, meta.annotations
