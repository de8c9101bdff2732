"""Team: its members with their roles, its limits, and the values that its clusters get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.api.butler.v1alpha1 import Team
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.api.butler.v1alpha1.team import Environment, TeamAccess, TeamLimits, TeamSpec
from homeport.machinery.quantity import QuantityError, parse_quantity
from homeport.platforms.butler.normal.addons import check_default_addons
from homeport.platforms.butler.normal.limits import Limits, read_limits
from homeport.platforms.butler.normal.outcome import Normal, Reading
from homeport.platforms.butler.normal.values import ClusterValues, read_defaults

VIEWER = "viewer"
# The namespace of a team has the name of the team; these belong to others.
RESERVED = ("default", "butler-system", "butler-tenants", "homeport-system")


@dataclass(frozen=True, slots=True)
class Member:
    """A user or a group with a role; `environment` '': in the whole team."""

    kind: str  # User or Group
    name: str
    role: str
    environment: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentModel:
    max_clusters: int | None = None
    max_per_member: int | None = None
    values: ClusterValues = field(default_factory=ClusterValues)


@dataclass(frozen=True, slots=True)
class TeamModel:
    name: str
    namespace: str
    members: tuple[Member, ...] = ()
    limits: Limits = field(default_factory=Limits)
    values: ClusterValues = field(default_factory=ClusterValues)
    provider: ProviderRef | None = None
    environments: Mapping[str, EnvironmentModel] = field(default_factory=dict)


def normal_team(team: Team) -> Normal[TeamModel]:
    reading, spec, name = Reading(), team.spec, team.metadata.name
    if name in RESERVED or name.startswith("kube-"):
        reading.fault("metadata.name", f'"{name}": the namespace of this name belongs to the platform; choose another')
    if len(name) > 63 or "." in name:
        reading.fault(
            "metadata.name", f'"{name}": a team has a namespace of its name: use at most 63 letters, digits, -'
        )
    limits = _limits(reading, spec)
    values = _values(reading, spec)
    members = [*_members(spec.access, "")]
    environments = {}
    for each in spec.environments:
        members += _members(each.access, each.name)
        environments[each.name] = _environment(each)
        check_default_addons(
            reading, f"spec.environments[{each.name}].clusterDefaults", environments[each.name].values.addons
        )
    _check_duplicates(reading, members)
    return reading.result(
        lambda: TeamModel(name, name, tuple(members), limits, values, spec.provider_config_ref, environments)
    )


def _environment(given: Environment) -> EnvironmentModel:
    limits = given.limits
    return EnvironmentModel(
        limits.max_clusters if limits else None,
        limits.max_clusters_per_member if limits else None,
        read_defaults(given.cluster_defaults),
    )


def _members(access: TeamAccess | None, environment: str) -> list[Member]:
    if access is None:
        return []
    users = [Member("User", each.name, each.role or VIEWER, environment) for each in access.users]
    return [*users, *(Member("Group", each.name, each.role or VIEWER, environment) for each in access.groups)]


def _check_duplicates(reading: Reading, members: list[Member]) -> None:
    """Two roles of one member in one place: the list would have to be read to know which one counts."""
    seen: dict[tuple[str, str, str], str] = {}
    for each in members:
        if each.kind == "Group" and each.name.startswith("system:"):
            reading.fault("spec.access.groups", f'"{each.name}" is a group of Kubernetes: name a group of your own')
        role = seen.setdefault((each.kind, each.name, each.environment), each.role)
        if role != each.role:
            where = f"environment {each.environment}" if each.environment else "the team"
            message = f'{each.kind} "{each.name}" has two roles in {where}, {role} and {each.role}: keep one'
            reading.fault("spec.environments" if each.environment else "spec.access", message)


def _limits(reading: Reading, spec: TeamSpec) -> Limits:
    if spec.resource_limits is not None and spec.quotas is not None and spec.resource_limits != spec.quotas:
        reading.fault("spec.quotas", "contradicts spec.resourceLimits, which means the same: set only one of them")
    path = "spec.resourceLimits" if spec.resource_limits is not None else "spec.quotas"
    return read_limits(reading, path, spec.resource_limits or spec.quotas)


def _values(reading: Reading, spec: TeamSpec) -> ClusterValues:
    if spec.cluster_defaults is not None and spec.defaults is not None and spec.cluster_defaults != spec.defaults:
        reading.fault("spec.defaults", "contradicts spec.clusterDefaults, which means the same: set only one of them")
    found = read_defaults(spec.cluster_defaults or spec.defaults)
    check_default_addons(reading, "spec.clusterDefaults", found.addons)
    limits = spec.resource_limits or spec.quotas or TeamLimits()
    path = "spec.resourceLimits" if spec.resource_limits is not None else "spec.quotas"
    workers = reading.either(
        ("spec.clusterDefaults.workerCount", found.workers), (f"{path}.defaultNodeCount", limits.default_node_count)
    )
    cpu = reading.either(
        ("spec.clusterDefaults.workerCPU", found.cpu),
        (f"{path}.defaultCPUPerNode", _whole(reading, f"{path}.defaultCPUPerNode", limits.default_cpu_per_node)),
    )
    memory = found.memory or limits.default_memory_per_node
    return ClusterValues(found.version, workers, cpu, memory, found.disk, found.addons)


def _whole(reading: Reading, path: str, text: str | int) -> int | None:
    if text == "":
        return None
    try:
        found = parse_quantity(text)
    except QuantityError:
        reading.fault(path, f'"{text}" is not a number of CPUs: write for example 4')
        return None
    if found.amount != found.value or found.value < 1:
        reading.fault(path, f'"{text}": VMs have whole CPUs; write for example 4')
        return None
    return found.value
