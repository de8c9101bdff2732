"""The Nutanix provider on a manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from homeport.api.nutanix.v1beta1 import (
    NutanixCluster,
    NutanixFailureDomain,
    NutanixMachine,
    NutanixMachineTemplate,
)
from homeport.capi.addresspool import KINDS
from homeport.capi.capi import Capi
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Key
from homeport.infra.install import install as install_provider
from homeport.infra.machine.driver import InstanceDriver
from homeport.infra.machine.location import Location
from homeport.infra.preflight.name import lookup_of
from homeport.infra.preflight.pool import cached_pools
from homeport.infra.protocol import Conditions, Provider, Trigger
from homeport.infra.reconciler import is_provisioned
from homeport.providers.nutanix import failuredomain, metro
from homeport.providers.nutanix.cluster import NutanixClusterDriver
from homeport.providers.nutanix.connection import Connector, PrismSession
from homeport.providers.nutanix.machine import NutanixInstances
from homeport.providers.nutanix.preflight import Preflight
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager

CLUSTER_FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixcluster"
MACHINE_FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixmachine"
SOURCE_FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixclustercredential"
# Of objects that older versions of upstream's provider made, and that no newer one has touched since.
FORMER_FINALIZERS = frozenset(
    {
        "nutanixcluster.infrastructure.cluster.x-k8s.io",
        "nutanixmachine.infrastructure.cluster.x-k8s.io",
        "nutanixcluster/infrastructure.cluster.x-k8s.io",
    }
)
# Upstream's names, because users may watch for them.
CONDITIONS = Conditions(connection="PrismClientInit", instance="VMProvisioned", addresses="VMAddressesAssigned")


def install(
    manager: Manager, dial: DialOptions = DIRECT, capi: Capi | None = None
) -> Provider[NutanixCluster, NutanixMachine, PrismSession]:
    objects = _Objects(manager)
    preflight = Preflight(objects.domain, objects.clusters, cached_pools(manager), lookup_of(dial))
    provider = Provider(
        name="nutanix",
        cluster_kind=NutanixCluster,
        machine_kind=NutanixMachine,
        cluster_driver=NutanixClusterDriver(preflight),
        machine_driver=InstanceDriver(NutanixInstances(objects.domain), manager.clock),
        connector=Connector(manager.client, manager.clock, dial),
        preflight=preflight,
        cluster_finalizer=CLUSTER_FINALIZER,
        machine_finalizer=MACHINE_FINALIZER,
        source_finalizer=SOURCE_FINALIZER,
        former_finalizers=FORMER_FINALIZERS,
        conditions=CONDITIONS,
        triggers=(
            Trigger(NutanixFailureDomain, objects.users_of_domain),
            *(Trigger(kind, objects.unprovisioned_beside) for kind in KINDS.values()),
        ),
        template_kind=NutanixMachineTemplate,
        capacity=capacity_of,
        vip_interface=lambda infra: "ens3",
        location=lambda session: Location(f"Prism Central {session.prism.address}"),
        observe_seconds=600.0,  # whose VM changes is woken by the watch, within a minute
    )
    install_provider(manager, provider, capi)
    failuredomain.install(manager)
    metro.install(manager)
    return provider


def capacity_of(template: NutanixMachineTemplate) -> Mapping[str, Any]:
    spec = template.spec.template.spec
    made: dict[str, Any] = {"cpu": str(spec.vcpu_sockets * spec.vcpus_per_socket), "memory": str(spec.memory_size)}
    if spec.gpus:
        made["nvidia.com/gpu"] = str(len(spec.gpus))
    return made


class _Objects:
    """Objects beside a cluster that its specs refer to by name."""

    def __init__(self, manager: Manager) -> None:
        self._infra = manager.informers.get(NutanixCluster).cache
        self._domains = manager.informers.get(NutanixFailureDomain).cache

    def domain(self, namespace: str, name: str) -> NutanixFailureDomain | None:
        found: NutanixFailureDomain | None = self._domains.get(Key(namespace, name))
        return found

    def clusters(self) -> Iterable[NutanixCluster]:
        return iter(self._infra)

    # -- whom a change concerns --------------------------------------------------------------------------------

    def unprovisioned_beside(self, pool: Any) -> Iterator[Key]:
        """Clusters of the namespace that still may be waiting for it; it does not say to which one it belongs."""
        return (key_of(each) for each in self._infra.list(pool.metadata.namespace) if not is_provisioned(each))

    def users_of_domain(self, domain: NutanixFailureDomain) -> Iterator[Key]:
        for each in self._infra.list(domain.metadata.namespace):
            if domain.metadata.name in (ref.name for ref in each.spec.control_plane_failure_domains):
                yield key_of(each)
