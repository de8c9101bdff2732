"""Machines that exist already and are reached over SSH, version v1beta1: deprecated, converted to v1beta2."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.cluster.v1beta2 import MachineAddress
from homeport.api.meta import Model
from homeport.api.remote import v1beta2
from homeport.api.remote.part import AccessSpec, ProvisionJob, SecretRef
from homeport.api.schema import Default, Required
from homeport.api.version import older


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


class PooledMachineSpec(AccessSpec):
    address: Required[str] = ""
    custom_clean_up_commands: list[str] = []
    ssh_key_ref: Required[SecretRef] = msgspec.field(default_factory=SecretRef)


class RemoteClusterStatus(Model):
    ready: Required[Annotated[bool, Default(False)]] = False


_REPLACED = {
    v1beta2.RemoteMachineSpec: RemoteMachineSpec,
    v1beta2.RemoteMachineStatus: RemoteMachineStatus,
    v1beta2.PooledMachineSpec: PooledMachineSpec,
    v1beta2.RemoteClusterStatus: RemoteClusterStatus,
}

RemoteMachine = older(v1beta2.RemoteMachine, "v1beta1", _REPLACED)
RemoteMachineTemplate = older(v1beta2.RemoteMachineTemplate, "v1beta1", _REPLACED)
PooledRemoteMachine = older(v1beta2.PooledRemoteMachine, "v1beta1", _REPLACED)
RemoteCluster = older(v1beta2.RemoteCluster, "v1beta1", _REPLACED)
RemoteClusterTemplate = older(v1beta2.RemoteClusterTemplate, "v1beta1", _REPLACED)
