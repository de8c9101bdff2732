"""An add-on is removed from its Cluster: its own objects alone, in reverse order, and the inventory last."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.addons.chart.release import Charts
from homeport.addons.problem import Problem
from homeport.addons.scope import AddonScope
from homeport.addons.target.inventory import ForeignInventory, Inventory, Ref, delete_inventory, read_inventory
from homeport.addons.target.object import Target, failure, removal_waves
from homeport.client.errors import ApiError
from homeport.runtime.outcome import Wait

_LOOK_AGAIN_SECONDS = 2.0
_SHOWN = 5


class Removal:
    def __init__(self, charts: Charts) -> None:
        self._charts = charts

    async def run(self, scope: AddonScope, target: Target) -> Wait | None:
        """None: nothing of the add-on is left in the cluster. Raises Problem."""
        try:
            return await self._run(scope, target)
        except ApiError as error:
            found = failure(f"Cluster {scope.cluster_key.name}", error)
            raise Problem(found.reason, str(found), after=1.0, warning=not found.lost) from None

    async def _run(self, scope: AddonScope, target: Target) -> Wait | None:
        try:
            inventory = await read_inventory(target.client, scope.key) or Inventory()
        except ForeignInventory:
            inventory = Inventory()  # then nothing was ever applied
        custom, others = removal_waves(inventory.refs)
        wait = await self._delete(target, custom)
        release = inventory.release or _reported(scope)
        if wait is None and release:
            namespace, _, name = release.partition("/")
            listed = bool(inventory.release)
            wait = await self._charts.uninstall(target, scope.key, namespace, name, listed=listed)
        if wait is None:
            wait = await self._delete(target, others)
        if wait is not None:
            return wait
        await delete_inventory(target.client, scope.key)
        return None

    async def _delete(self, target: Target, refs: Sequence[Ref]) -> Wait | None:
        held = [why for ref in refs if (why := await target.delete(ref))]
        return Wait("Removing", "\n".join(held[:_SHOWN]), after=_LOOK_AGAIN_SECONDS) if held else None


def _reported(scope: AddonScope) -> str:
    """Somebody deleted the inventory: the release of the status is removed if its record says that it is ours."""
    known = scope.object.status.release
    return f"{known.namespace}/{known.name}" if known.name else ""
