"""Machines that exist already and are reached over SSH, version v1beta1: deprecated, converted to v1beta2."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2 import MachineAddress
from homeport.api.meta import Model, Object, resource
from homeport.api.remote.part import (
    GROUP,
    AccessSpec,
    ClusterSpec,
    ClusterTemplateSpec,
    MachineTemplateSpec,
    PooledStatus,
    ProvisionJob,
    SecretRef,
)
from homeport.api.schema import Default, Required


class RemoteMachineSpec(AccessSpec):
    address: str = ""
    custom_clean_up_commands: list[str] = []
    pool: str = ""
    provider_id: str = ""
    provision_job: ProvisionJob | None = None
    ssh_key_ref: SecretRef | None = None


class RemoteMachineStatus(Model):
    addresses: list[MachineAddress] = []
    failure_message: str | None = None
    failure_reason: str | None = None
    ready: bool = False


@resource(GROUP, "v1beta1", "RemoteMachine", "remotemachines")
class RemoteMachine(Object):
    """A RemoteMachine is a machine that exists already and becomes a Kubernetes Node over SSH."""

    spec: RemoteMachineSpec = msgspec.field(default_factory=RemoteMachineSpec)
    status: RemoteMachineStatus = msgspec.field(default_factory=RemoteMachineStatus)


@resource(GROUP, "v1beta1", "RemoteMachineTemplate", "remotemachinetemplates")
class RemoteMachineTemplate(Object):
    """A RemoteMachineTemplate is the template of RemoteMachines that take their machines from a pool."""

    spec: MachineTemplateSpec = msgspec.field(default_factory=MachineTemplateSpec)


class PooledMachineSpec(AccessSpec):
    address: Required[str] = ""
    custom_clean_up_commands: list[str] = []
    ssh_key_ref: Required[SecretRef] = msgspec.field(default_factory=SecretRef)


class PooledRemoteMachineSpec(Model):
    machine: Required[PooledMachineSpec] = msgspec.field(default_factory=PooledMachineSpec)
    pool: Required[str] = ""


@resource(GROUP, "v1beta1", "PooledRemoteMachine", "pooledremotemachines")
class PooledRemoteMachine(Object):
    """A PooledRemoteMachine is a machine of a pool, which one RemoteMachine at a time can reserve."""

    spec: PooledRemoteMachineSpec = msgspec.field(default_factory=PooledRemoteMachineSpec)
    status: PooledStatus = msgspec.field(default_factory=PooledStatus)


class RemoteClusterStatus(Model):
    ready: Required[Annotated[bool, Default(False)]] = False


@resource(GROUP, "v1beta1", "RemoteCluster", "remoteclusters")
class RemoteCluster(Object):
    """A RemoteCluster is the infrastructure of a Cluster whose machines exist already."""

    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: RemoteClusterStatus = msgspec.field(default_factory=RemoteClusterStatus)


@resource(GROUP, "v1beta1", "RemoteClusterTemplate", "remoteclustertemplates")
class RemoteClusterTemplate(Object):
    """A RemoteClusterTemplate is the template of RemoteClusters for a ClusterClass."""

    spec: ClusterTemplateSpec = msgspec.field(default_factory=ClusterTemplateSpec)
