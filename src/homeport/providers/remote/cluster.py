"""The infrastructure of a cluster of remote machines: there is nothing to make for it."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.remote.v1beta2 import RemoteCluster
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check, ClusterScope, Owned
from homeport.infra.protocol import ClusterDriver as ClusterDriverProtocol
from homeport.providers.remote.connection import RemoteSession
from homeport.runtime.outcome import Wait

Scope = ClusterScope[RemoteCluster, RemoteSession]


class ClusterDriver(ClusterDriverProtocol[RemoteCluster, RemoteSession]):
    async def converge(self, scope: Scope) -> Wait | None:
        del scope
        return None

    async def release(self, scope: Scope) -> Wait | None:
        del scope
        return None

    async def list_owned(self, scope: Scope) -> Sequence[Owned]:
        """No list of machines exists beyond the objects themselves."""
        del scope
        return ()

    async def remove(self, scope: Scope, owned: Owned) -> None:
        del scope, owned


class Preflight:
    """Each machine checks itself when it is reached."""

    async def check_references(
        self, session: RemoteSession, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        del session, plans, namespace
        return ()

    async def check_capacity(self, session: RemoteSession, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        del session, plans
        return ()
