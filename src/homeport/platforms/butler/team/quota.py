"""Limits of teams, environments and providers, and what goes beyond them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeport.api.butler.v1alpha1.providerconfig import ProviderLimits
from homeport.machinery.quantity import Quantity
from homeport.platforms.butler.normal.limits import Limits
from homeport.platforms.butler.normal.team import TeamModel
from homeport.platforms.butler.team.demand import Demand, as_bytes, total

QUOTA = "QuotaExceeded"
ENVIRONMENT_QUOTA = "EnvQuotaExceeded"
MEMBER_QUOTA = "PerMemberCapExceeded"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a cluster may not be, as a reason for conditions and a sentence on a field."""

    reason: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Held:
    """A cluster of the team that counts."""

    name: str
    environment: str
    owner: str
    provider: str  # namespace/name of its ProviderConfig; '' if unknown
    demand: Demand


def check_quota(
    team: TeamModel, limits: Limits, others: Sequence[Held], own: Held, before: Demand | None, *, enters: bool = True
) -> Iterator[Refusal]:
    """`others`: clusters that come first. `before`: what the cluster had; what does not grow is never refused, so a
    team that is over its limit can still scale down. `enters`: the cluster was not in its environment before."""
    grown = own.demand if before is None else _growth(own.demand, before)
    sum_ = total(each.demand for each in others) + own.demand
    yield from _team(team, limits, sum_, grown, own.demand)
    if not enters:
        return
    environment = team.environments.get(own.environment)
    if environment is None:
        return
    there = [each for each in others if each.environment == own.environment]
    if environment.max_clusters is not None and len(there) >= environment.max_clusters:
        yield Refusal(
            ENVIRONMENT_QUOTA,
            "metadata.labels",
            f"environment {own.environment} of team {team.name} has {len(there)} clusters; the most is "
            f"{environment.max_clusters}",
        )
    mine = [each for each in there if own.owner and each.owner == own.owner]
    if environment.max_per_member is not None and len(mine) >= environment.max_per_member:
        yield Refusal(
            MEMBER_QUOTA,
            "metadata.annotations",
            f"{own.owner} has {len(mine)} clusters in environment {own.environment} of team {team.name}; "
            f"the most is {environment.max_per_member}",
        )


def _growth(now: Demand, before: Demand) -> Demand:
    return Demand(
        max(0, now.clusters - before.clusters),
        max(0, now.nodes - before.nodes),
        max(0, now.cpu - before.cpu),
        max(0, now.memory - before.memory),
        max(0, now.storage - before.storage),
    )


def _team(team: TeamModel, limits: Limits, sum_: Demand, grown: Demand, own: Demand) -> Iterator[Refusal]:
    per_cluster = limits.nodes_per_cluster
    if per_cluster is not None and grown.nodes and own.nodes > per_cluster:
        yield Refusal(
            QUOTA, "spec.workers.replicas", f"{own.nodes} workers: team {team.name} allows {per_cluster} per cluster"
        )
    for field, what, limit, used, more in _rows(limits, sum_, grown):
        if limit is not None and more and used > limit:
            yield Refusal(QUOTA, field, f"team {team.name} would use {used} {what} of {limit}")


def _rows(limits: Limits, sum_: Demand, grown: Demand) -> Iterator[tuple[str, str, Quantity | None, Quantity, int]]:
    at = "spec.workers"
    yield "metadata.name", "clusters", _count(limits.clusters), Quantity(sum_.clusters), grown.clusters
    yield f"{at}.replicas", "workers", _count(limits.nodes), Quantity(sum_.nodes), grown.nodes
    yield f"{at}.machineTemplate.cpu", "CPUs", limits.cpu, Quantity(sum_.cpu), grown.cpu
    yield f"{at}.machineTemplate.memory", "memory", limits.memory, as_bytes(sum_.memory), grown.memory
    yield f"{at}.machineTemplate.diskSize", "disk space", limits.storage, as_bytes(sum_.storage), grown.storage


def _count(limit: int | None) -> Quantity | None:
    return None if limit is None else Quantity(limit)


def check_provider_limits(
    name: str, limits: ProviderLimits, others: Sequence[Held], own: Held, before: Demand | None
) -> Iterator[Refusal]:
    """The most that one team may have on one provider."""
    there = [each for each in others if each.provider == own.provider]
    if before is None and limits.max_clusters_per_team is not None and len(there) >= limits.max_clusters_per_team:
        yield Refusal(
            QUOTA,
            "spec.providerConfigRef",
            f"the team has {len(there)} clusters on ProviderConfig {name}; the most is {limits.max_clusters_per_team}",
        )
    nodes = sum(each.demand.nodes for each in there) + own.demand.nodes
    grows = before is None or own.demand.nodes > before.nodes
    if limits.max_nodes_per_team is not None and grows and nodes > limits.max_nodes_per_team:
        yield Refusal(
            QUOTA,
            "spec.workers.replicas",
            f"the team would have {nodes} workers on ProviderConfig {name}; the most is {limits.max_nodes_per_team}",
        )


@dataclass(frozen=True, slots=True)
class Share:
    """How much of one limit is used."""

    what: str
    percent: int
    text: str


def shares(limits: Limits, used: Demand) -> list[Share]:
    """Of limits that are set. A limit of 0 is fully used as soon as there is anything."""
    found = []
    for _, what, limit, amount, _ in _rows(limits, used, used):
        if limit is None:
            continue
        percent = int(amount.amount * 100 / limit.amount) if limit.amount else (101 if amount.amount else 100)
        found.append(Share(what, percent, f"{amount} of {limit} {what}"))
    return found
