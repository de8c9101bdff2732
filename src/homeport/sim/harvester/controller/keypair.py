"""KeyPairs: their fingerprint is worked out."""

from __future__ import annotations

from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import KEY_PAIR
from homeport.sim.harvester.manifest import fingerprint
from homeport.sim.harvester.object import leaving, status_of


class KeyPairs:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def settle(self, key: str) -> float | None:
        found = self._core.mirror.get(KEY_PAIR, key)
        if found is None or leaving(found):
            return None
        print_ = fingerprint(found["spec"]["publicKey"])
        if status_of(found).get("fingerPrint") != print_:
            validated = {"type": "validated", "status": "True", "lastUpdateTime": self._core.stamp}
            await self._core.patch(KEY_PAIR, found, {"status": {"fingerPrint": print_, "conditions": [validated]}})
        return None
