"""There is no vendor to connect to: each machine is reached by itself, when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.remote.v1beta2 import PooledRemoteMachine, RemoteCluster, RemoteMachine
from homeport.capi.cloud import Sources
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """Holds nothing open."""

    async def close(self) -> None: ...


class Connector:
    """`pooled`: all PooledRemoteMachines of the plane."""

    def __init__(self, pooled: Callable[[], Iterable[PooledRemoteMachine]]) -> None:
        self._pooled = pooled

    def sources(self, infra: RemoteCluster) -> Sources:
        del infra
        return Sources()

    def machine_sources(self, infra: RemoteMachine) -> Sources:
        """The SSH key of the machine, or of the one that it has reserved."""
        namespace, name = infra.metadata.namespace, infra.metadata.name
        if not infra.spec.pool:
            ref = infra.spec.ssh_key_ref
            return Sources(secrets=(Key(namespace, ref.name),)) if ref is not None and ref.name else Sources()
        for each in self._pooled():
            ref, holder = each.spec.machine.ssh_key_ref, each.status.machine_ref
            if each.status.reserved and (holder.namespace, holder.name) == (namespace, name) and ref.name:
                return Sources(secrets=(Key(each.metadata.namespace, ref.name),))
        return Sources()

    async def connect(self, infra: RemoteCluster) -> RemoteSession:
        del infra
        return RemoteSession()

    async def connect_machine(self, infra: RemoteMachine, cluster: RemoteCluster | None) -> RemoteSession:
        del infra, cluster
        return RemoteSession()

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> RemoteSession:
        del settings, secret
        raise Misconfigured("remote machines are reached by their RemoteMachine alone")

    async def close(self) -> None: ...
