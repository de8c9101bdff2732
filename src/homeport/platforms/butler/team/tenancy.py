"""Which team a cluster belongs to, by the platform's multi-tenancy mode."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.butler.v1alpha1 import Team, TenantCluster
from homeport.platforms.butler.normal.config import DISABLED, ENFORCED
from homeport.platforms.butler.normal.outcome import Fault


def find_team(tenant: TenantCluster, mode: str, teams: Iterable[Team]) -> tuple[Team | None, Fault | None]:
    """A cluster in the namespace of a team belongs to that team, whether it says so or not: nobody gets around the
    limits of a team by leaving out the reference. Without multi-tenancy there are no teams."""
    if mode == DISABLED:
        return None, None
    by_name = {each.metadata.name: each for each in teams}
    wanted = tenant.spec.team_ref.name if tenant.spec.team_ref else ""
    here = by_name.get(tenant.metadata.namespace)  # a team's namespace has its name
    if wanted and wanted not in by_name:
        return None, Fault("spec.teamRef.name", f'Team "{wanted}" not found: create it, or leave out teamRef')
    if wanted and wanted != tenant.metadata.namespace:
        return None, Fault(
            "spec.teamRef.name",
            f'"{wanted}": the cluster is in namespace {tenant.metadata.namespace}; clusters of team {wanted} are in '
            f"namespace {wanted}",
        )
    if here is None and mode == ENFORCED:
        return None, Fault(
            "spec.teamRef",
            f"multi-tenancy is Enforced, and namespace {tenant.metadata.namespace} belongs to no team: create the "
            "cluster in the namespace of a team",
            required=True,
        )
    return here, None
