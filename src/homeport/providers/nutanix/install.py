"""The Nutanix provider on a manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.ipam.v1beta2 import IPPoolReference
from homeport.api.nutanix.v1beta1 import (
    NutanixCluster,
    NutanixFailureDomain,
    NutanixMachine,
    NutanixMachineTemplate,
)
from homeport.capi.addresspool import KINDS, Pool, pool_key, pool_kind
from homeport.capi.capi import Capi
from homeport.client.protocol import Key
from homeport.client.reach import DIRECT, Reach
from homeport.infra.install import install as install_provider
from homeport.infra.protocol import Conditions, Provider, Trigger
from homeport.infra.reconciler import is_provisioned
from homeport.providers.nutanix import failuredomain, metro
from homeport.providers.nutanix.cluster import ClusterDriver
from homeport.providers.nutanix.connection import Connector, PrismSession
from homeport.providers.nutanix.machine import MachineDriver
from homeport.providers.nutanix.preflight import Preflight, Wanted
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
# As upstream calls them, for whoever watches for these.
CONDITIONS = Conditions(connection="PrismClientInit", instance="VMProvisioned", addresses="VMAddressesAssigned")


def install(
    manager: Manager, reach: Reach = DIRECT, capi: Capi | None = None
) -> Provider[NutanixCluster, NutanixMachine, PrismSession]:
    plans = _Plans(manager)
    provider = Provider(
        name="nutanix",
        cluster_kind=NutanixCluster,
        machine_kind=NutanixMachine,
        cluster_driver=ClusterDriver(Preflight(plans.domain, plans.wanted, plans.clusters, plans.pool)),
        machine_driver=MachineDriver(plans.domain),
        connector=Connector(manager.client, manager.clock, reach),
        cluster_finalizer=CLUSTER_FINALIZER,
        machine_finalizer=MACHINE_FINALIZER,
        source_finalizer=SOURCE_FINALIZER,
        former_finalizers=FORMER_FINALIZERS,
        conditions=CONDITIONS,
        triggers=(
            Trigger(NutanixMachineTemplate, plans.unprovisioned_beside),
            Trigger(KubeadmControlPlane, plans.unprovisioned_beside),
            Trigger(MachineDeployment, plans.infra_of_deployment),
            Trigger(NutanixFailureDomain, plans.users_of_domain),
            *(Trigger(kind, plans.unprovisioned_beside) for kind in KINDS.values()),
        ),
        template_kind=NutanixMachineTemplate,
        capacity=capacity_of,
        vip_interface="ens3",
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


class _Plans:
    """What the objects of a cluster say about the machines that it is going to have."""

    def __init__(self, manager: Manager) -> None:
        self._infra = manager.informers.get(NutanixCluster).cache
        self._clusters = manager.informers.get(Cluster).cache
        self._domains = manager.informers.get(NutanixFailureDomain).cache
        self._templates = manager.informers.get(NutanixMachineTemplate).cache
        self._planes = manager.informers.get(KubeadmControlPlane).cache
        self._deployments = manager.informers.get(MachineDeployment).cache
        self._pools: dict[type[Pool], Any] = {kind: manager.informers.get(kind).cache for kind in KINDS.values()}

    def pool(self, namespace: str, ref: IPPoolReference) -> Pool | None:
        kind = pool_kind(ref)
        found: Pool | None = self._pools[kind].get(pool_key(kind, ref.name, namespace)) if kind is not None else None
        return found

    def domain(self, namespace: str, name: str) -> NutanixFailureDomain | None:
        found: NutanixFailureDomain | None = self._domains.get(Key(namespace, name))
        return found

    def clusters(self) -> Iterable[NutanixCluster]:
        return iter(self._infra)

    def wanted(self, namespace: str, cluster: str) -> Iterator[Wanted]:
        owner = self._clusters.get(Key(namespace, cluster))
        ref = owner.spec.control_plane_ref if owner is not None else None
        if ref is not None and ref.kind == "KubeadmControlPlane":
            yield self._of_plane(namespace, ref.name)
        for each in self._deployments.list(namespace):
            machine = each.spec.template.spec
            if each.spec.cluster_name == cluster and machine.infrastructure_ref is not None:
                count = 1 if each.spec.replicas is None else each.spec.replicas
                name = f"MachineDeployment {each.metadata.name}"
                yield self._of_template(namespace, machine.infrastructure_ref, name, count, machine.version)

    def _of_plane(self, namespace: str, name: str) -> Wanted:
        plane = self._planes.get(Key(namespace, name))
        if plane is None:
            return Wanted(name, missing=f"KubeadmControlPlane {name} does not exist yet")
        format_ = plane.spec.kubeadm_config_spec.format or "cloud-config"
        ref = plane.spec.machine_template.spec.infrastructure_ref
        count = 1 if plane.spec.replicas is None else plane.spec.replicas
        found = self._of_template(namespace, ref, f"KubeadmControlPlane {name}", count, plane.spec.version, format_)
        return replace(found, control_plane=True)

    def _of_template(
        self, namespace: str, ref: Any, owner: str, count: int, version: str, format_: str = "cloud-config"
    ) -> Wanted:
        if ref is None or ref.kind != "NutanixMachineTemplate":
            kind = ref.kind if ref is not None else "nothing"
            return Wanted(owner, missing=f"{owner}: its infrastructureRef names {kind}, not a NutanixMachineTemplate")
        template = self._templates.get(Key(namespace, ref.name))
        if template is None:
            return Wanted(owner, missing=f"{owner}: NutanixMachineTemplate {ref.name} does not exist yet")
        return Wanted(owner, count, template, format_, version)

    # -- whom a change concerns --------------------------------------------------------------------------------

    def unprovisioned_beside(self, obj: Any) -> Iterator[Key]:
        """Clusters of the namespace that still may be waiting for it; it does not say to which one it belongs."""
        return (key_of(each) for each in self._infra.list(obj.metadata.namespace) if not is_provisioned(each))

    def infra_of_deployment(self, deployment: MachineDeployment) -> Iterator[Key]:
        cluster = self._clusters.get(Key(deployment.metadata.namespace, deployment.spec.cluster_name))
        ref = cluster.spec.infrastructure_ref if cluster is not None else None
        if ref is not None and ref.kind == "NutanixCluster":
            yield Key(deployment.metadata.namespace, ref.name)

    def users_of_domain(self, domain: NutanixFailureDomain) -> Iterator[Key]:
        for each in self._infra.list(domain.metadata.namespace):
            if domain.metadata.name in (ref.name for ref in each.spec.control_plane_failure_domains):
                yield key_of(each)
