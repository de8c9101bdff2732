"""The Acme provider as a component of the plane: `homeport up --plugin acme.component:COMPONENT`."""

from __future__ import annotations

from collections.abc import Mapping

from acme.api import AcmeCluster, AcmeMachine, AcmeMachineTemplate
from acme.cluster import AcmeClusterDriver, AcmePreflight
from acme.connection import Connector
from acme.definition import definitions
from acme.machine import AcmeInstances
from homeport.capi.component import Component, Setup
from homeport.infra.install import install as install_provider
from homeport.infra.machine.driver import InstanceDriver
from homeport.infra.protocol import Conditions, Provider

CONDITIONS = Conditions()


def install(setup: Setup) -> None:
    manager = setup.manager
    provider = Provider(
        name="acme",
        cluster_kind=AcmeCluster,
        machine_kind=AcmeMachine,
        cluster_driver=AcmeClusterDriver(),
        machine_driver=InstanceDriver(AcmeInstances(), manager.clock),
        connector=Connector(manager.client, manager.clock, setup.environment.dial),
        preflight=AcmePreflight(),
        cluster_finalizer="acmecluster.infrastructure.cluster.x-k8s.io",
        machine_finalizer="acmemachine.infrastructure.cluster.x-k8s.io",
        source_finalizer="acmecluster.infrastructure.cluster.x-k8s.io/credentials",
        conditions=CONDITIONS,
        template_kind=AcmeMachineTemplate,
        capacity=capacity_of,
        vip_interface=lambda infra: "eth0",  # Acme has no load balancers: control planes share a virtual address
    )
    install_provider(manager, provider, setup.capi)


def capacity_of(template: AcmeMachineTemplate) -> Mapping[str, str]:
    """What a machine of this template would have, for autoscalers."""
    spec = template.spec.template.spec
    return {"cpu": str(spec.cpus), "memory": spec.memory}


COMPONENT = Component(name="acme", requires=("core",), definitions=definitions, install=install)
