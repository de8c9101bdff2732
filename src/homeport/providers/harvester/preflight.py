"""Everything that can be found wrong with a cluster before its first machine exists."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.infra.plan import MachinePlan
from homeport.infra.protocol import Check
from homeport.providers.harvester.connection import HarvesterSession
from homeport.providers.harvester.endpoint import Scope


class Preflight:
    async def run(self, scope: Scope) -> Sequence[Check]:
        """What is wrong with the cluster itself."""
        del scope
        return []

    async def check_references(
        self, session: HarvesterSession, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        del session, plans, namespace
        return []

    async def check_capacity(self, session: HarvesterSession, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        del session, plans
        return []
