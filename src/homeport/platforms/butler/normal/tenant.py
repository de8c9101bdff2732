"""TenantCluster: every value that the platform uses for a cluster, and where each of them comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.api.butler.v1alpha1.tenantcluster import (
    EffectiveValue,
    GitOpsAddon,
    TenantClusterSpec,
    TenantControlPlane,
    TenantNetworking,
    WorkerMachine,
    WorkerOS,
    WorkerPool,
    Workers,
)
from homeport.api.core.v1 import Taint
from homeport.api.meta import wire
from homeport.capi import version as versions
from homeport.machinery.address import AddressSet
from homeport.machinery.schema.name import dns_label_1035, label_key, label_value
from homeport.platforms.butler.name import ENVIRONMENT_LABEL
from homeport.platforms.butler.normal.addons import METALLB, AddonModel, read_addons
from homeport.platforms.butler.normal.addresses import NONE, check_apart, read_network, read_pool, read_range
from homeport.platforms.butler.normal.config import ConfigModel
from homeport.platforms.butler.normal.outcome import Fault, Normal, Reading
from homeport.platforms.butler.normal.sizes import (
    MAX_CPU,
    MAX_NODES,
    MAX_POOL,
    check_most,
    disk_gib,
    either_amount,
    memory_mib,
)
from homeport.platforms.butler.normal.team import TeamModel
from homeport.platforms.butler.normal.values import (
    BUILT_IN,
    BUILT_IN_VALUES,
    CONFIG,
    ENVIRONMENT,
    TEAM,
    Choices,
)

POD_CIDR = "10.244.0.0/16"
SERVICE_CIDR = "10.96.0.0/12"
WORKER_OS = "rocky"
MAIN_POOL = "workers"
OLDEST_MINOR = 29
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_NETWORK = {4: 2**8, 6: 2**64}  # addresses of Pods on one Node
_FEWEST_SERVICES = 16  # the DNS server has the tenth
# Names of Services, machines and labels are made from the name of a cluster, and have 63 characters at most.
LONGEST_NAME = 50
_LONGEST_LABEL = 63


@dataclass(frozen=True, slots=True)
class Defaults:
    """Where values come from that a cluster does not set. `team` None: it has none."""

    config: ConfigModel = field(default_factory=ConfigModel)
    team: TeamModel | None = None


@dataclass(frozen=True, slots=True)
class PoolModel:
    """Workers of one size. The pool of spec.workers is called `workers`."""

    name: str
    replicas: int
    cpu: int
    memory_mib: int
    disk_gib: int
    os: WorkerOS
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class TenantModel:
    version: str = ""
    team: str = ""
    environment: str = ""
    provider: ProviderRef | None = None
    hosted: bool = True
    replicas: int = 1
    control_plane: TenantControlPlane = field(default_factory=TenantControlPlane)
    pools: tuple[PoolModel, ...] = ()
    pod_cidr: str = POD_CIDR
    service_cidr: str = SERVICE_CIDR
    load_balancer: AddressSet = NONE
    lb_pool_size: int | None = None
    addons: tuple[AddonModel, ...] = ()  # in the order in which they are installed
    balancer: AddonModel = METALLB  # if there are addresses for one, and the object names none
    extra_addons: tuple[str, ...] = ()  # names of the catalogue, by default
    extra_source: str = ""  # environment, team or ButlerConfig
    gitops: GitOpsAddon | None = None
    mode: str = "Active"  # Active, Observe or GitOps
    paused: bool = False
    time_servers: tuple[str, ...] = ()  # (): those of the ProviderConfig, then default_time_servers
    default_time_servers: tuple[str, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)  # spec.infrastructureOverride, by type of provider
    ssh_key: str = ""
    effective: tuple[EffectiveValue, ...] = ()

    @property
    def nodes(self) -> int:
        return sum(each.replicas for each in self.pools)


def normal_tenant_cluster(tenant: TenantCluster, defaults: Defaults) -> Normal[TenantModel]:
    reading, spec = Reading(), tenant.spec
    environment = tenant.metadata.labels.get(ENVIRONMENT_LABEL, "")
    choices = Choices(reading, _levels(reading, environment, defaults))
    version, where = choices.choose("spec.kubernetesVersion", "version", spec.kubernetes_version)
    _check_version(reading, where, str(version))
    pools = _pools(choices, spec, tenant.metadata.name)
    networks = _networks(choices, spec)
    addons = read_addons(choices, spec.addons, defaults.config.addon_versions)
    extra, source = choices.names("spec.addons", "addons")
    return reading.result(
        lambda: replace(
            _plain(spec, defaults.config),
            version=str(version),
            environment=environment,
            pools=tuple(pools),
            pod_cidr=networks.pods,
            service_cidr=networks.services,
            load_balancer=networks.load_balancer,
            addons=addons,
            balancer=replace(METALLB, version=defaults.config.addon_versions.metallb),
            extra_addons=extra,
            extra_source=source,
            ssh_key=pools[0].os.ssh_authorized_key or defaults.config.ssh_key,
            effective=tuple(choices.effective),
        )
    )


@dataclass(frozen=True, slots=True)
class _Networks:
    pods: str
    services: str
    load_balancer: AddressSet


def _plain(spec: TenantClusterSpec, config: ConfigModel) -> TenantModel:
    """What is taken from the object as it is."""
    plane = spec.control_plane or TenantControlPlane()
    return TenantModel(
        team=spec.team_ref.name if spec.team_ref else "",
        provider=spec.provider_config_ref,
        hosted=plane.type != "standalone",
        replicas=plane.replicas or 1,
        control_plane=plane,
        lb_pool_size=spec.networking.lb_pool_size if spec.networking else None,
        gitops=spec.addons.gitops if spec.addons else None,
        mode=(spec.management_policy.mode if spec.management_policy else "") or "Active",
        paused=spec.paused,
        time_servers=tuple(spec.time_servers),
        default_time_servers=config.time_servers,
        overrides=wire(spec.infrastructure_override) or {},
    )


def name_faults(name: str) -> list[Fault]:
    """What is wrong with the name of a new cluster: things that are made from it would be refused later."""
    path = "metadata.name"
    if len(name) > LONGEST_NAME:
        text = f'"{name}" has {len(name)} characters; at most {LONGEST_NAME} are possible'
        return [Fault(path, f"{text}: names of Services and machines are made from it")]
    if dns_label_1035(name):
        text = f'"{name}": use lower case letters, digits and -, with a letter first and no dots'
        return [Fault(path, f"{text}: the Service of the control plane has the same name")]
    return []


def _check_pool_name(reading: Reading, cluster: str, path: str, pool: str) -> None:
    label = f"{cluster}-{pool}"
    if len(cluster) <= LONGEST_NAME and len(label) > _LONGEST_LABEL:
        most = _LONGEST_LABEL - len(cluster) - 1
        text = f'"{pool}" has {len(pool)} characters; at most {most} are possible in cluster {cluster}'
        reading.fault(f"{path}.name", f"{text}: its machines are called CLUSTER-POOL-...")


def _levels(reading: Reading, environment: str, defaults: Defaults) -> list[tuple[str, Any]]:
    team, levels = defaults.team, []
    if team is not None:
        if environment and environment not in team.environments:
            known = ", ".join(sorted(team.environments)) or "none"
            reading.fault(
                f"metadata.labels[{ENVIRONMENT_LABEL}]",
                f'"{environment}": team {team.name} has no such environment; it has {known}',
            )
        elif environment:
            levels.append((ENVIRONMENT, team.environments[environment].values))
        levels.append((TEAM, team.values))
    return [*levels, (CONFIG, defaults.config.values), (BUILT_IN, BUILT_IN_VALUES)]


def _check_version(reading: Reading, where: str, version: str) -> None:
    if not versions.is_valid(version):
        reading.fault(where, f'"{version}": not a valid version: expected for example {BUILT_IN_VALUES.version}')
    elif versions.parse(version).minor < OLDEST_MINOR:
        reading.fault(where, f'"{version}": the oldest version that is supported is v1.{OLDEST_MINOR}.0')


def _pools(choices: Choices, spec: TenantClusterSpec, cluster: str) -> list[PoolModel]:
    main = spec.workers or Workers()
    found = [_pool(choices, "spec.workers", MAIN_POOL, main)]
    for each in spec.worker_pools:
        path = f"spec.workerPools[{each.name}]"
        if each.name == MAIN_POOL:
            choices.reading.fault(path, f'"{MAIN_POOL}" is the name of the pool of spec.workers: choose another name')
        _check_pool_name(choices.reading, cluster, path, each.name)
        _check_marks(choices.reading, path, each)
        found.append(_pool(choices, path, each.name, each))
    if all(each.replicas <= MAX_POOL for each in found):
        check_most(choices.reading, "spec.workerPools", sum(each.replicas for each in found), MAX_NODES, "workers")
    return found


def _check_marks(reading: Reading, path: str, pool: WorkerPool) -> None:
    """A kubelet does not start with a label or taint that is wrong."""
    marks = [(f"{path}.labels", key, value) for key, value in pool.labels.items()]
    marks += [(f"{path}.taints", each.key, each.value) for each in pool.taints]
    for at, key, value in marks:
        for wrong in (*label_key(key), *label_value(value)):
            reading.fault(at, f'"{key}={value}": {wrong}')
    for each in pool.taints:
        if each.effect not in _EFFECTS:
            reading.fault(f"{path}.taints", f'"{each.effect}" is not an effect: use {", ".join(_EFFECTS)}')


def _pool(choices: Choices, path: str, name: str, given: Workers) -> PoolModel:
    reading, shape = choices.reading, given.machine_template or WorkerMachine()
    at = f"{path}.machineTemplate"
    own = either_amount(reading, (f"{at}.diskSize", shape.disk_size), (f"{at}.disk", shape.disk))
    replicas, replicas_at = choices.choose(f"{path}.replicas", "workers", given.replicas)
    check_most(reading, replicas_at, int(str(replicas)), MAX_POOL, "workers in one pool")
    cpu, cpu_at = choices.choose(f"{at}.cpu", "cpu", shape.cpu)
    check_most(reading, cpu_at, int(str(cpu)), MAX_CPU, "CPUs of a machine")
    memory, memory_at = choices.choose(f"{at}.memory", "memory", shape.memory)
    disk, disk_at = choices.choose(f"{at}.{'disk' if shape.disk else 'diskSize'}", "disk", own)
    os = shape.os or WorkerOS()
    choices.given_or(f"{at}.os.type", os.type, (BUILT_IN, WORKER_OS))
    return PoolModel(
        name=name,
        replicas=int(str(replicas)),
        cpu=int(str(cpu)),
        memory_mib=memory_mib(reading, memory_at, str(memory)),
        disk_gib=disk_gib(reading, disk_at, str(disk)),
        os=msgspec.structs.replace(os, type=os.type or WORKER_OS),
        labels=dict(given.labels) if isinstance(given, WorkerPool) else {},
        taints=tuple(given.taints) if isinstance(given, WorkerPool) else (),
    )


def _networks(choices: Choices, spec: TenantClusterSpec) -> _Networks:
    reading, given = choices.reading, spec.networking or TenantNetworking()
    pods = choices.given_or("spec.networking.podCIDR", given.pod_cidr, (BUILT_IN, POD_CIDR))
    services = choices.given_or("spec.networking.serviceCIDR", given.service_cidr, (BUILT_IN, SERVICE_CIDR))
    addons = spec.addons.load_balancer if spec.addons else None
    spellings = (
        (
            "spec.networking.loadBalancerPool",
            read_pool(reading, "spec.networking.loadBalancerPool", given.load_balancer_pool),
        ),
        (
            "spec.addons.loadBalancer.addressPool",
            read_range(reading, "spec.addons.loadBalancer.addressPool", addons.address_pool if addons else ""),
        ),
        (
            "spec.platform.metalLBPool",
            read_range(reading, "spec.platform.metalLBPool", spec.platform.metallb_pool if spec.platform else ""),
        ),
    )
    pool = reading.either(*((path, found or None) for path, found in spellings)) or AddressSet()
    path = next((path for path, found in spellings if found), spellings[0][0])
    if pool:
        choices.note(path, str(pool), "object")
    networks = {
        "spec.networking.podCIDR": read_network(reading, "spec.networking.podCIDR", pods),
        "spec.networking.serviceCIDR": read_network(reading, "spec.networking.serviceCIDR", services),
        path: pool,
    }
    check_apart(reading, networks)
    _check_networks(reading, networks["spec.networking.podCIDR"], networks["spec.networking.serviceCIDR"])
    return _Networks(pods, services, pool)


def _check_networks(reading: Reading, pods: AddressSet, services: AddressSet) -> None:
    """What the controller manager and the API server refuse to start with."""
    if not pods or not services:
        return
    if pods.version != services.version:
        text = f"{services} is IPv{services.version}, and spec.networking.podCIDR is IPv{pods.version}: set both"
        reading.fault("spec.networking.serviceCIDR", text)
    if pods.count < _NODE_NETWORK[pods.version]:
        text = f"{pods} is too small: each Node gets {_NODE_NETWORK[pods.version]} addresses of it"
        reading.fault("spec.networking.podCIDR", text)
    if services.count < _FEWEST_SERVICES:
        text = f"{services} is too small: at least {_FEWEST_SERVICES} addresses are needed"
        reading.fault("spec.networking.serviceCIDR", text)
