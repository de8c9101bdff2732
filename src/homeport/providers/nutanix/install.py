"""The Nutanix provider on a manager."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import (
    NutanixCluster,
    NutanixFailureDomain,
    NutanixMachine,
    NutanixMachineTemplate,
)
from homeport.capi.capi import Capi
from homeport.client.protocol import Key
from homeport.client.reach import DIRECT, Reach
from homeport.infra.install import install as install_provider
from homeport.infra.protocol import Provider
from homeport.providers.nutanix.cluster import ClusterDriver
from homeport.providers.nutanix.connection import Connector, PrismSession
from homeport.providers.nutanix.machine import MachineDriver
from homeport.runtime.manager import Manager

CLUSTER_FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixcluster"
MACHINE_FINALIZER = "infrastructure.cluster.x-k8s.io/nutanixmachine"


def install(
    manager: Manager, capi: Capi, reach: Reach = DIRECT
) -> Provider[NutanixCluster, NutanixMachine, PrismSession]:
    domains = manager.informers.get(NutanixFailureDomain).cache
    templates = manager.informers.get(NutanixMachineTemplate).cache
    control_planes = manager.informers.get(KubeadmControlPlane).cache
    deployments = manager.informers.get(MachineDeployment).cache

    def find_domain(namespace: str, name: str) -> NutanixFailureDomain | None:
        found: NutanixFailureDomain | None = domains.get(Key(namespace, name))
        return found

    def templates_of(namespace: str, cluster: str) -> Iterable[tuple[NutanixMachineTemplate, int]]:
        """What the cluster's machines will be made from, and how many of them."""
        wanted: dict[str, int] = {}
        owner = manager.informers.get(Cluster).cache.get(Key(namespace, cluster))
        ref = owner.spec.control_plane_ref if owner is not None else None
        if ref is not None and ref.kind == "KubeadmControlPlane":
            plane = control_planes.get(Key(namespace, ref.name))
            if plane is not None and plane.spec.machine_template.spec.infrastructure_ref is not None:
                name = plane.spec.machine_template.spec.infrastructure_ref.name
                wanted[name] = wanted.get(name, 0) + (plane.spec.replicas or 1)
        for each in deployments.list(namespace):
            machine = each.spec.template.spec
            if each.spec.cluster_name == cluster and machine.infrastructure_ref is not None:
                name = machine.infrastructure_ref.name
                wanted[name] = wanted.get(name, 0) + (1 if each.spec.replicas is None else each.spec.replicas)
        for name, count in wanted.items():
            template = templates.get(Key(namespace, name))
            if template is not None:
                yield template, count

    provider = Provider(
        name="nutanix",
        cluster_kind=NutanixCluster,
        machine_kind=NutanixMachine,
        cluster_driver=ClusterDriver(find_domain, templates_of),
        machine_driver=MachineDriver(find_domain),
        connector=Connector(manager.client, manager.clock, reach),
        cluster_finalizer=CLUSTER_FINALIZER,
        machine_finalizer=MACHINE_FINALIZER,
        vip_interface="ens3",
    )
    install_provider(manager, capi, provider)
    return provider
