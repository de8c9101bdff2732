"""Two ServiceSets of one cluster that have the same service: who has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homeport.api.k0rdent.v1beta1 import ServiceSet
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.platforms.k0rdent.service.settings import read_settings


@dataclass(frozen=True, slots=True)
class Rival:
    """Another ServiceSet with the same service. `wins`: it has the service, and we do not."""

    wins: bool
    message: str


def rank(owner: ServiceSet) -> tuple[int, str, str]:
    """The lowest one has the service: the highest priority, then the older ServiceSet."""
    priority = read_settings(owner.spec.provider.config).priority
    return (-priority, owner.metadata.creation_timestamp or "", owner.metadata.name)


def rival_of(owner: ServiceSet, service: ServiceWithValues, others: Iterable[ServiceSet]) -> Rival | None:
    """The strongest one; None if nobody else has the service."""
    found = [
        each
        for each in others
        if not each.metadata.deletion_timestamp
        and any(
            (one.namespace, one.name) == (service.namespace, service.name) and one.helm_action != "Uninstall"
            for one in each.spec.services
        )
    ]
    if not found:
        return None
    best = min(found, key=rank)
    priority = read_settings(best.spec.provider.config).priority
    whose = (
        f"MultiClusterService {best.spec.multi_cluster_service}"
        if best.spec.multi_cluster_service
        else f"ClusterDeployment {best.spec.cluster}"
    )
    message = (
        f"{whose} has a service of the same name and namespace, with priority {priority}, and wins: give this one "
        "another name, or change a priority"
    )
    return Rival(rank(best) < rank(owner), message)
