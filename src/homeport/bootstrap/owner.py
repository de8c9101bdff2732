"""Whose bootstrap data it is: a Machine's, or that of all machines of a MachinePool."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.cluster.v1beta2 import Machine, MachinePool
from homeport.api.meta import Object
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.capi.object.joined import has_joined
from homeport.capi.object.ownership import owner_of_kind
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache


@dataclass(frozen=True, slots=True)
class Owner:
    kind: str
    name: str
    cluster_name: str
    version: str
    data_secret_name: str  # '' until the owner has taken it over
    joined: bool  # all its nodes are there
    provisioned: bool  # its infrastructure has read the data
    control_plane: bool = False
    deleting: bool = False
    provider_id: str = ""
    node_name: str = ""  # '' until the Node is known

    @property
    def pool(self) -> bool:
        return self.kind == "MachinePool"


def owner_of(config: Object, machines: Cache[Machine], pools: Cache[MachinePool]) -> Owner | None:
    """None: nobody has taken the config yet, or its owner is not (or no longer) there."""
    namespace = config.metadata.namespace
    reference = owner_of_kind(config, Machine.__resource__)
    if reference is not None:
        machine = machines.get(Key(namespace, reference["name"]))
        return None if machine is None else from_machine(machine)
    reference = owner_of_kind(config, MachinePool.__resource__)
    if reference is not None:
        pool = pools.get(Key(namespace, reference["name"]))
        return None if pool is None else from_pool(pool)
    return None


def from_machine(machine: Machine) -> Owner:
    return Owner(
        kind="Machine",
        name=machine.metadata.name,
        cluster_name=machine.spec.cluster_name,
        version=machine.spec.version or "",
        data_secret_name=machine.spec.bootstrap.data_secret_name or "",
        joined=has_joined(machine.status.node_ref, machine.status.conditions),
        provisioned=bool(machine.status.initialization.infrastructure_provisioned),
        control_plane=CONTROL_PLANE_LABEL in machine.metadata.labels,
        deleting=bool(machine.metadata.deletion_timestamp),
        provider_id=machine.spec.provider_id or "",
        node_name=machine.status.node_ref.name if machine.status.node_ref is not None else "",
    )


def from_pool(pool: MachinePool) -> Owner:
    template = pool.spec.template.spec
    wanted = 1 if pool.spec.replicas is None else pool.spec.replicas
    return Owner(
        kind="MachinePool",
        name=pool.metadata.name,
        cluster_name=pool.spec.cluster_name,
        version=template.version or "",
        data_secret_name=template.bootstrap.data_secret_name or "",
        joined=len(pool.status.node_refs) == wanted,
        provisioned=bool(pool.status.initialization.infrastructure_provisioned),
    )
