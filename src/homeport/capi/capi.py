"""What Cluster API controllers share, made once per manager."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.capi.object.external import Externals
from homeport.capi.rehearsal import Rehearsal
from homeport.capi.remote.etcdmember import EtcdMembers
from homeport.capi.remote.remotes import Connect, Remotes
from homeport.capi.remote.workload import connect_over_http
from homeport.capi.resolution import Contracts
from homeport.runtime.clock import Clock
from homeport.runtime.manager import Manager


@dataclass(frozen=True, slots=True)
class Capi:
    manager: Manager
    contracts: Contracts
    externals: Externals
    remotes: Remotes
    clock: Clock
    proxy: str = ""  # by which workload clusters are reached; kubeconfigs name it
    members: EtcdMembers = field(default_factory=EtcdMembers)
    connect: Connect = connect_over_http  # to any cluster, by its kubeconfig
    rehearsal: Rehearsal | None = None

    @classmethod
    def make(
        cls, manager: Manager, *, connect: Connect | None = None, proxy: str = "", rehearsal: Rehearsal | None = None
    ) -> Capi:
        """`connect` and `proxy`: how workload clusters are reached."""
        connect = connect if rehearsal is None else rehearsal.connect
        contracts = Contracts(manager.informers)
        externals = Externals(manager, contracts)
        remotes = Remotes(manager, connect=connect, proxy=proxy)
        how = connect or connect_over_http
        return cls(manager, contracts, externals, remotes, manager.clock, proxy, connect=how, rehearsal=rehearsal)
