"""The remote machine provider on a manager."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteCluster, RemoteMachine
from homeport.capi.capi import Capi
from homeport.client.protocol import Key
from homeport.infra.install import install as install_provider
from homeport.infra.protocol import Conditions, Provider, Trigger
from homeport.providers.remote.cluster import ClusterDriver, Preflight
from homeport.providers.remote.connection import Connector, RemoteSession
from homeport.providers.remote.machine import MachineDriver
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager

CLUSTER_FINALIZER = "remotecluster.k0smotron.io/finalizer"
MACHINE_FINALIZER = "remotemachine.k0smotron.io/finalizer"  # as upstream spells it, so that objects may change hands
SOURCE_FINALIZER = "remotemachine.k0smotron.io/credentials"
CONDITIONS = Conditions(instance="BootstrapExecSucceeded")


def install(manager: Manager, capi: Capi | None = None) -> Provider[RemoteCluster, RemoteMachine, RemoteSession]:
    machines = manager.informers.get(RemoteMachine).cache
    pooled = manager.informers.get(PooledRemoteMachine).cache
    connector = Connector(lambda: iter(pooled))

    def users_of(machine: PooledRemoteMachine) -> Iterable[Key]:
        """A machine that became free serves one that waits; one that was changed, its user."""
        for each in machines.list(machine.metadata.namespace):
            if each.spec.pool == machine.spec.pool:
                yield key_of(each)

    provider = Provider(
        name="remote",
        cluster_kind=RemoteCluster,
        machine_kind=RemoteMachine,
        cluster_driver=ClusterDriver(),
        machine_driver=MachineDriver(manager.client, lambda: iter(machines), manager.clock),
        connector=connector,
        preflight=Preflight(),
        cluster_finalizer=CLUSTER_FINALIZER,
        machine_finalizer=MACHINE_FINALIZER,
        source_finalizer=SOURCE_FINALIZER,
        conditions=CONDITIONS,
        machine_sources=connector.machine_sources,
        machine_triggers=(Trigger(PooledRemoteMachine, users_of),),
        observe_seconds=300.0,  # each look is an SSH session
    )
    install_provider(manager, provider, capi)
    return provider
