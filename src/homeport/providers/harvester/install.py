"""The KubeVirt and Harvester provider on a manager."""

from __future__ import annotations

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine, KubevirtMachineTemplate
from homeport.capi.capi import Capi
from homeport.client.dial import DIRECT, DialOptions
from homeport.infra.install import install as install_provider
from homeport.infra.preflight.name import lookup_of
from homeport.infra.preflight.pool import cached_pools
from homeport.infra.protocol import Conditions, Provider
from homeport.providers.harvester.cloud.node import Nodes
from homeport.providers.harvester.cluster import ClusterDriver
from homeport.providers.harvester.endpoint import vip_interface
from homeport.providers.harvester.infracluster.connection import Connector, HarvesterSession
from homeport.providers.harvester.machine.bootstrap import BootstrapChecks
from homeport.providers.harvester.machine.driver import MachineDriver
from homeport.providers.harvester.machine.observation import PROVISIONED
from homeport.providers.harvester.machine.plan import capacity_of
from homeport.providers.harvester.machine.sshkey import SshKeys
from homeport.providers.harvester.preflight.check import Preflight
from homeport.runtime.manager import Manager

# As upstream spells them, so that objects may change hands.
CLUSTER_FINALIZER = "kubevirtcluster.infrastructure.cluster.x-k8s.io"
MACHINE_FINALIZER = "kubevirtmachine.infrastructure.cluster.x-k8s.io"
SOURCE_FINALIZER = "kubevirtcluster.infrastructure.cluster.x-k8s.io/credentials"
CONDITIONS = Conditions(connection="InfrastructureConnected", instance=PROVISIONED, addresses="VMAddressesAssigned")


def install(
    manager: Manager, dial: DialOptions = DIRECT, capi: Capi | None = None
) -> Provider[KubevirtCluster, KubevirtMachine, HarvesterSession]:
    clusters = manager.informers.get(KubevirtCluster).cache
    machines = manager.informers.get(KubevirtMachine).cache
    preflight = Preflight(lambda: iter(clusters), cached_pools(manager), lookup_of(dial))
    connector = Connector(manager.client, manager.clock, dial)
    checks = BootstrapChecks(SshKeys(manager.client), dial, manager.clock)
    manager.job(checks.run)
    provider = Provider(
        name="kubevirt",
        cluster_kind=KubevirtCluster,
        machine_kind=KubevirtMachine,
        cluster_driver=ClusterDriver(
            preflight, lambda namespace: [each for each in machines if each.metadata.namespace == namespace]
        ),
        machine_driver=MachineDriver(manager.clock, Nodes(capi), checks),
        connector=connector,
        preflight=preflight,
        cluster_finalizer=CLUSTER_FINALIZER,
        machine_finalizer=MACHINE_FINALIZER,
        source_finalizer=SOURCE_FINALIZER,
        conditions=CONDITIONS,
        machine_sources=connector.machine_sources,
        template_kind=KubevirtMachineTemplate,
        capacity=capacity_of,
        vip_interface=vip_interface,
        location=lambda session: session.location,
        observe_seconds=300.0,  # whose VM changes is woken by the watch
        front_seconds=60.0,  # accounts need no permission to watch LoadBalancers and Services
    )
    install_provider(manager, provider, capi)
    return provider
