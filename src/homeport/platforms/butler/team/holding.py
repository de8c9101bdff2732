"""What counts against the limits of a team: what its TenantClusters ask for, and what exists for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.platforms.butler.name import CREATED_BY_ANNOTATION, ENVIRONMENT_LABEL, OWNER_ANNOTATION
from homeport.platforms.butler.normal.tenant import Defaults, normal_tenant_cluster
from homeport.platforms.butler.team.demand import Demand, demand_of, total
from homeport.platforms.butler.team.existing import Existing
from homeport.platforms.butler.team.quota import Held

ProviderName = Callable[[TenantCluster], str]  # namespace/name of the ProviderConfig of a cluster; '' if unknown


@dataclass(frozen=True, slots=True)
class Holding:
    """What one TenantCluster asks for, and what exists for it."""

    wanted: Held
    existing: Demand

    @property
    def both(self) -> Held:
        return self._with(self.wanted.demand.at_least(self.existing))

    @property
    def only_existing(self) -> Held | None:
        return self._with(self.existing) if self.existing.clusters else None

    def _with(self, demand: Demand) -> Held:
        held = self.wanted
        return Held(held.name, held.environment, held.owner, held.provider, demand)


def hold(tenant: TenantCluster, existing: Iterable[Existing], defaults: Defaults, provider: ProviderName) -> Holding:
    """A TenantCluster that can't be read counts as a cluster, and with what exists for it."""
    model = normal_tenant_cluster(tenant, defaults).model
    notes = tenant.metadata.annotations
    owner = notes.get(OWNER_ANNOTATION) or notes.get(CREATED_BY_ANNOTATION, "")
    environment = tenant.metadata.labels.get(ENVIRONMENT_LABEL, "")
    demand = Demand(clusters=1) if model is None else demand_of(model)
    wanted = Held(tenant.metadata.name, environment, owner, provider(tenant), demand)
    there = total(each.demand for each in existing if each.belongs_to(tenant))
    return Holding(wanted, there)


def left_behind(tenants: Sequence[TenantCluster], existing: Iterable[Existing]) -> list[Existing]:
    """Clusters whose TenantCluster is gone, though they are not."""
    return [each for each in existing if not any(map(each.belongs_to, tenants))]


def as_held(existing: Existing) -> Held:
    return Held(existing.source.name, existing.environment, "", existing.provider, existing.demand)


def describe_left_behind(existing: Iterable[Existing]) -> str:
    """'' if there are none."""
    names = sorted(f"{each.namespace}/{each.source.name}" for each in existing)
    if not names:
        return ""
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return (
        f"{len(names)} Cluster{'s' if len(names) > 1 else ''} without a TenantCluster ({listed}): a platform "
        "administrator deletes each with `kubectl delete cluster -n NAMESPACE NAME`"
    )
