"""From the answers to a blueprint. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.meta import wire
from homeport.capi.platform import ClusterRequest, Shape
from homeport.platforms.butler.addon.offer import ALIASES
from homeport.platforms.butler.normal.addons import AddonModel, disabled_addons
from homeport.platforms.butler.normal.tenant import PoolModel, TenantModel
from homeport.platforms.butler.team.existing import render_size
from homeport.platforms.butler.tenant import state
from homeport.platforms.butler.tenant.blueprint import Blueprint, ControlPlane, WorkerGroup
from homeport.platforms.butler.tenant.name import DEFAULT_ADDONS, WORKER_IMAGE, labels_of
from homeport.platforms.butler.tenant.provider import Provider
from homeport.platforms.butler.tenant.scope import TenantScope
from homeport.runtime.cache import key_of

Json = dict[str, Any]
API_PORT = 6443


def draw(scope: TenantScope) -> Blueprint:
    model, provider = scope.model, scope.provider
    assert model is not None
    assert provider is not None
    request = ClusterRequest(
        name=scope.key.name,
        namespace=scope.namespace,
        endpoint=(scope.endpoint, API_PORT) if scope.endpoint and not model.hosted else None,
        labels=labels_of(scope.key, model.team),
    )
    return Blueprint(
        source=scope.key,
        namespace=scope.namespace,
        team=model.team,
        cluster_kind=provider.support.cluster_kind,
        template_kind=provider.support.template_kind,
        infra=tuple(provider.support.cluster_objects(provider.site, request)),
        control_plane=_control_plane(scope, model, provider),
        workers=tuple(_group(scope, model, provider, each) for each in model.pools),
        addons=scope.addons,
        default_addons=default_names(scope, model),
        pod_cidr=model.pod_cidr,
        service_cidr=model.service_cidr,
        paused=model.paused,
        environment=model.environment,
        provider=str(key_of(provider.config)),
    )


def addons_of(scope: TenantScope, model: TenantModel) -> list[AddonModel]:
    """Addresses for load balancers bring the load balancer along, unless it is turned off."""
    addons, given = list(model.addons), scope.object.spec.addons
    block = given.load_balancer if given is not None else None
    if scope.addresses and block is None:
        addons.append(model.balancer)
    if model.gitops is not None:
        addons.append(AddonModel("gitops", model.gitops.provider or "fluxcd", model.gitops.version))
    return addons


def default_names(scope: TenantScope, model: TenantModel) -> tuple[str, ...]:
    """What a new cluster gets by default. One that exists keeps what it got, whatever the default is now."""
    cluster = scope.children.cluster
    if cluster is None:
        return model.extra_addons
    return tuple(filter(None, cluster.metadata.annotations.get(DEFAULT_ADDONS, "").split(",")))


def default_addons(scope: TenantScope, model: TenantModel, named: Sequence[AddonModel]) -> list[AddonModel]:
    """Without those that the object names or turns off."""
    taken = {each.provider for each in named} | disabled_addons(scope.object.spec.addons)
    taken = {ALIASES.get(each, each) for each in taken}
    names = [each for each in default_names(scope, model) if ALIASES.get(each, each) not in taken]
    return [AddonModel(each, each, source=model.extra_source or "ButlerConfig") for each in dict.fromkeys(names)]


def _control_plane(scope: TenantScope, model: TenantModel, provider: Provider) -> ControlPlane:
    given = model.control_plane
    return ControlPlane(
        hosted=model.hosted,
        replicas=model.replicas,
        version=model.version,
        data_store=given.data_store_ref.name if given.data_store_ref is not None else "",
        service_type=given.service_type or "LoadBalancer",
        address=scope.endpoint if model.hosted else "",
        cert_sans=tuple(given.cert_sans),
        resources=_resources(wire(given.resources) if given.resources is not None else {}),
        machine=None if model.hosted else _machine(scope, provider, model.pools[0]),
        size=render_size(model.pools[0]),
    )


def _resources(given: Json) -> dict[str, Json]:
    """The programs that a StewardControlPlane knows."""
    return {name: given[name] for name in ("apiServer", "controllerManager", "scheduler") if given.get(name)}


def _group(scope: TenantScope, model: TenantModel, provider: Provider, pool: PoolModel) -> WorkerGroup:
    keys = dict.fromkeys(each for each in (pool.os.ssh_authorized_key, model.ssh_key) if each)
    return WorkerGroup(
        name=pool.name,
        replicas=pool.replicas,
        version=worker_version(scope, pool.name),
        os=pool.os.type,
        image=scope.images[pool.name],
        machine=_machine(scope, provider, pool),
        labels=pool.labels,
        taints=tuple(wire(each) for each in pool.taints),
        ssh_keys=tuple(keys),
        size=render_size(pool),
        time_servers=model.time_servers or tuple(provider.model.network.time_servers) or model.default_time_servers,
    )


def _machine(scope: TenantScope, provider: Provider, pool: PoolModel) -> Json:
    image = provider.id_of(scope.images[pool.name])
    shape = Shape(cpu=pool.cpu, memory=f"{pool.memory_mib}Mi", disk=f"{pool.disk_gib}Gi", image=image)
    return provider.support.machine_template(provider.site, shape)


# -- what the workers have ------------------------------------------------------------------------------------------


def worker_version(scope: TenantScope, pool: str) -> str:
    """Workers follow when the control plane serves the new version."""
    assert scope.model is not None
    wanted, found = scope.model.version, _deployment(scope, pool)
    running = found.spec.template.spec.version if found is not None else ""
    return wanted if not running or state.at_version(scope.children.version, wanted) else running


def kept_image(scope: TenantScope, pool: str) -> str:
    found = _deployment(scope, pool)
    return found.metadata.annotations.get(WORKER_IMAGE, "") if found is not None else ""


def _deployment(scope: TenantScope, pool: str) -> MachineDeployment | None:
    name = f"{scope.key.name}-{pool}"
    return next((each for each in scope.children.deployments if each.metadata.name == name), None)
