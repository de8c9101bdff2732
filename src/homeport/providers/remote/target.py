"""The machine behind a RemoteMachine: the one that it names itself, or the one that it has reserved in a pool. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteMachine
from homeport.capi.cloud import Address
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.runtime.cache import key_of

HOST_KEY = "remote.homeport.dev/host-key"
OWNER = "remote.homeport.dev/owner"


@dataclass(frozen=True, slots=True)
class Target:
    """`pooled`: the PooledRemoteMachine that it comes from; the recorded host key belongs to that."""

    machine: Key
    address: str
    port: int
    user: str
    use_sudo: bool
    as_script: bool
    working_dir: str
    cleanup: tuple[str, ...]
    secret: Key
    host_key: str = ""
    pooled: Key | None = None

    def __str__(self) -> str:
        return f"RemoteMachine {self.machine.name} ({self.address}:{self.port})"

    @property
    def id(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    @property
    def provider_id(self) -> str:
        return f"remote-machine://{self.id}"

    @property
    def host_key_place(self) -> str:
        holder = f"PooledRemoteMachine {self.pooled}" if self.pooled else f"RemoteMachine {self.machine}"
        return f"the annotation {HOST_KEY} of {holder}"

    @property
    def addresses(self) -> tuple[Address, ...]:
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            return (Address("InternalDNS", self.address),)
        return (Address("InternalIP", self.address),)


def target_of(infra: RemoteMachine, pooled: PooledRemoteMachine | None) -> Target:
    """Raises Misconfigured, for objects that were stored before admission checked them."""
    spec, key = infra.spec, key_of(infra)
    if spec.provision_job is not None:
        raise Misconfigured(
            f"RemoteMachine {key.name}: spec.provisionJob is not supported: Homeport uses SSH itself; remove it"
        )
    access = spec if pooled is None else pooled.spec.machine
    holder = infra if pooled is None else pooled
    ref = access.ssh_key_ref
    if not access.address or ref is None or not ref.name:
        raise Misconfigured(
            f"RemoteMachine {key.name}: spec.address and spec.sshKeyRef are required without spec.pool: set them"
        )
    return Target(
        machine=key,
        address=access.address,
        port=access.port,
        user=access.user,
        use_sudo=access.use_sudo,
        as_script=access.commands_as_script,
        working_dir=access.working_dir,
        cleanup=tuple(access.clean_up_commands),
        secret=Key(holder.metadata.namespace, ref.name),
        host_key=holder.metadata.annotations.get(HOST_KEY, ""),
        pooled=None if pooled is None else key_of(pooled),
    )
