"""NutanixFailureDomains stay while anything is placed by them."""

from __future__ import annotations

from homeport.api.nutanix.metro import NutanixMetro, NutanixMetroSite
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixFailureDomain
from homeport.infra.cluster import failuredomain
from homeport.infra.cluster.failuredomain import User
from homeport.runtime.manager import Manager

FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixfailuredomain"
_USERS = (
    User(NutanixCluster, lambda each: (ref.name for ref in each.spec.control_plane_failure_domains)),
    User(NutanixMetro, lambda each: (ref.name for ref in each.spec.failure_domains)),
    User(NutanixMetroSite, lambda each: (each.spec.preferred_failure_domain.name,)),
)


def install(manager: Manager) -> None:
    failuredomain.install(manager, "nutanix", NutanixFailureDomain, FINALIZER, _USERS)
