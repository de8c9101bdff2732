"""What objects of Butler's kinds may say. Nothing is changed: the stored object is the one that was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from homeport.api.butler import v1alpha1 as butler
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.capi import version as versions
from homeport.client.absence import find_object
from homeport.client.errors import Cause
from homeport.client.protocol import Client, Key, Query
from homeport.platforms.butler.name import CONFIG_NAME
from homeport.platforms.butler.normal.addon import (
    normal_addon_definition,
    normal_management_addon,
    normal_tenant_addon,
)
from homeport.platforms.butler.normal.addresses import overlap_messages
from homeport.platforms.butler.normal.bootstrap import normal_cluster_bootstrap
from homeport.platforms.butler.normal.config import normal_butler_config
from homeport.platforms.butler.normal.image import normal_image_sync
from homeport.platforms.butler.normal.machine import normal_machine_request
from homeport.platforms.butler.normal.network import normal_ip_allocation, normal_network_pool
from homeport.platforms.butler.normal.outcome import Fault, Normal
from homeport.platforms.butler.normal.policy import normal_cluster_creation_policy
from homeport.platforms.butler.normal.provider import normal_provider_config
from homeport.platforms.butler.normal.team import normal_team
from homeport.platforms.butler.normal.tenant import name_faults
from homeport.platforms.butler.normal.user import normal_identity_provider, normal_user
from homeport.platforms.butler.provider.site import foreign_credentials
from homeport.platforms.butler.team.existing import observe_existing
from homeport.platforms.butler.team.quota import Refusal
from homeport.platforms.butler.team.verdict import Verdict, World, judge, pools_of
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
T = TypeVar("T")

# Kinds that can be judged by themselves. TenantCluster is judged with its team, provider and neighbours.
_NORMAL: dict[type[Any], Callable[[Any], Normal[Any]]] = {
    butler.ProviderConfig: normal_provider_config,
    butler.ButlerConfig: normal_butler_config,
    butler.ClusterBootstrap: normal_cluster_bootstrap,
    butler.MachineRequest: normal_machine_request,
    butler.ImageSync: normal_image_sync,
    butler.Team: normal_team,
    butler.User: normal_user,
    butler.AddonDefinition: normal_addon_definition,
    butler.TenantAddon: normal_tenant_addon,
    butler.ManagementAddon: normal_management_addon,
    butler.NetworkPool: normal_network_pool,
    butler.IPAllocation: normal_ip_allocation,
    butler.ClusterCreationPolicy: normal_cluster_creation_policy,
    butler.IdentityProvider: normal_identity_provider,
}


def register(hooks: Hooks, client: Client) -> None:
    """`client` reads teams, providers and other clusters; it needs access to all of Butler's kinds."""
    for kind, normal in _NORMAL.items():
        own = Alone(kind, normal)
        hooks.add(kind, validate=own.validate, warn=own.warn)
    neighbours = Neighbours(client)
    hooks.add(butler.TenantCluster, validate=neighbours.validate_tenant, warn=neighbours.warn_tenant)
    hooks.add(butler.ButlerConfig, validate=neighbours.validate_config)
    hooks.add(butler.ProviderConfig, validate=neighbours.validate_provider)
    hooks.add(butler.IPAllocation, validate=validate_allocation)


def is_settled(obj: Json, old: Json | None) -> bool:
    """Nothing that is judged changed, or the object is on its way out. What was stored before a rule existed can be
    labelled, reported on and deleted."""
    if old is None:
        return False
    meta = old.get("metadata") or {}
    return bool(meta.get("deletionTimestamp")) or (old.get("spec") == obj.get("spec") and _labels(old) == _labels(obj))


def _labels(obj: Json) -> Json:
    return (obj.get("metadata") or {}).get("labels") or {}


def read(kind: type[T], obj: Json) -> T:
    return msgspec.convert(obj, kind, strict=False)


class Alone:
    """Objects of one kind, each by itself."""

    def __init__(self, kind: type[Any], normal: Callable[[Any], Normal[Any]]) -> None:
        self._kind = kind
        self._normal = normal

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return [] if is_settled(obj, old) else [*causes(self._normal(read(self._kind, obj)).faults)]

    def warn(self, obj: Json, old: Json | None) -> list[str]:
        return [] if is_settled(obj, old) else [*self._normal(read(self._kind, obj)).warnings]


def validate_allocation(obj: Json, old: Json | None) -> list[Cause]:
    """Whoever could change them would take addresses from a cluster that uses them."""
    before, now = ((each or {}).get("spec") or {} for each in (old, obj))
    if old is None or is_settled(obj, old):
        return []
    changed = [each for each in ("poolRef", "tenantClusterRef", "type") if before.get(each) != now.get(each)]
    return [*causes(Fault(f"spec.{each}", "immutable: create another IPAllocation") for each in changed)]


class Neighbours:
    """Objects that are judged together with others."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def validate_tenant(self, obj: Json, old: Json | None) -> list[Cause]:
        if is_settled(obj, old):
            return []
        before = None if old is None else read(butler.TenantCluster, old)
        tenant = read(butler.TenantCluster, obj)
        if before is None and (wrong := name_faults(tenant.metadata.name)):
            return [*causes(wrong)]
        verdict = judge(tenant, await self._world(tenant.metadata.namespace), before=before)
        found = [*causes(verdict.normal.faults), *_refused(verdict.refusals)]
        return found or [*causes(_changes(tenant, before, verdict))]

    async def warn_tenant(self, obj: Json, old: Json | None) -> list[str]:
        if is_settled(obj, old):
            return []
        tenant = read(butler.TenantCluster, obj)
        world = await self._world(tenant.metadata.namespace)
        verdict = judge(tenant, world)
        found = [*verdict.normal.warnings]
        if tenant.spec.team_ref is not None and world.settings.mode == "Disabled":
            found.append("spec.teamRef has no effect: spec.multiTenancy.mode of ButlerConfig butler is Disabled")
        if verdict.normal.model is not None and verdict.provider.config is None:
            found.append(f"spec.providerConfigRef: {verdict.provider.message}")
        return found

    async def validate_config(self, obj: Json, old: Json | None) -> list[Cause]:
        model = None if is_settled(obj, old) else normal_butler_config(read(butler.ButlerConfig, obj)).model
        if model is None or not model.load_balancer:
            return []
        tenants = (await self._client.list(butler.TenantCluster, Query())).items
        wrong = overlap_messages(model.load_balancer, pools_of(tenants))
        return [*causes(Fault("spec.platform.metalLBPool", each) for each in wrong)]

    async def validate_provider(self, obj: Json, old: Json | None) -> list[Cause]:
        """A team has no say over Secrets elsewhere, and machines do not change their provider."""
        if is_settled(obj, old):
            return []
        config = read(butler.ProviderConfig, obj)
        if old is not None and (moved := _type_change(config, read(butler.ProviderConfig, old))):
            return [*causes([moved])]
        model, namespace = normal_provider_config(config).model, config.metadata.namespace
        if model is None or model.credentials is None or model.credentials.namespace == namespace:
            return []
        teams = (await self._client.list(butler.Team, Query())).items
        if namespace not in {each.metadata.name for each in teams}:
            return []
        field, _, text = foreign_credentials(model.type, model.credentials, namespace, namespace).partition(": ")
        return [Cause.forbidden(field, text)]

    async def _world(self, namespace: str) -> World:
        """All that has a say about a cluster in this namespace."""
        config = await find_object(self._client, butler.ButlerConfig, Key("", CONFIG_NAME))
        teams = (await self._client.list(butler.Team, Query())).items
        is_team = any(each.metadata.name == namespace for each in teams)
        existing = await observe_existing(self._client, namespace) if is_team else ()
        return World(
            config=config,
            teams=teams,
            tenants=(await self._client.list(butler.TenantCluster, Query())).items,
            providers=(await self._client.list(butler.ProviderConfig, Query())).items,
            policies=(await self._client.list(butler.ClusterCreationPolicy, Query())).items,
            pools=(await self._client.list(butler.NetworkPool, Query())).items,
            existing=lambda team: existing,
        )


def _type_change(config: butler.ProviderConfig, before: butler.ProviderConfig) -> Fault | None:
    now, then = config.spec.provider or config.spec.type, before.spec.provider or before.spec.type
    if not then or now == then:
        return None
    field = "spec.provider" if config.spec.provider else "spec.type"
    return Fault(field, f'"{now}": immutable: it is {then}; create another ProviderConfig for {now or "the other"}')


def _changes(tenant: butler.TenantCluster, before: butler.TenantCluster | None, verdict: Verdict) -> Iterator[Fault]:
    """What may not change once the cluster exists."""
    model = verdict.normal.model
    if before is None or model is None or not before.status.tenant_namespace:
        return
    running = before.status.observed_state.kubernetes_version if before.status.observed_state else ""
    yield from _version_change(running or before.spec.kubernetes_version, model.version)
    ref, used = tenant.spec.provider_config_ref, before.status.provider_config_ref
    if ref is not None and used is not None and (ref.name != used.name or _is_elsewhere(ref, used)):
        shown, runs = (f"{each.namespace}/{each.name}".removeprefix("/") for each in (ref, used))
        yield Fault("spec.providerConfigRef", f'"{shown}": immutable: the cluster runs on {runs}')
    one, other = tenant.spec.networking, before.spec.networking
    for name, attribute in (("podCIDR", "pod_cidr"), ("serviceCIDR", "service_cidr")):
        now, then = getattr(one, attribute, ""), getattr(other, attribute, "")
        if now != then:
            yield Fault(f"spec.networking.{name}", f'"{now}": immutable: the cluster already uses its network')
    plane, old_plane = tenant.spec.control_plane, before.spec.control_plane
    if (getattr(plane, "type", "") or "hosted") != (getattr(old_plane, "type", "") or "hosted"):
        yield Fault(
            "spec.controlPlane.type", "immutable: create another cluster to change where the control plane runs"
        )


def _is_elsewhere(ref: ProviderRef, used: ProviderRef) -> bool:
    return bool(ref.namespace and used.namespace) and ref.namespace != used.namespace


def _version_change(running: str, wanted: str) -> Iterator[Fault]:
    if not running or not versions.is_valid(running):
        return
    distance = versions.minor_distance(running, wanted)
    if versions.parse(wanted) < versions.parse(running):
        yield Fault(
            "spec.kubernetesVersion", f'"{wanted}": the cluster runs {running}, and downgrades are not supported'
        )
    elif distance > 1:
        yield Fault(
            "spec.kubernetesVersion", f'"{wanted}": the cluster runs {running}; upgrade one minor version at a time'
        )


def causes(faults: Iterable[Fault]) -> Iterator[Cause]:
    for each in faults:
        if each.required:
            yield Cause.required(each.field, f"{each.message}")
        else:
            yield Cause.invalid(each.field, f"{each.message}")


def _refused(refusals: Iterable[Refusal]) -> Iterator[Cause]:
    for each in refusals:
        yield Cause.forbidden(each.field, f"{each.message}")
