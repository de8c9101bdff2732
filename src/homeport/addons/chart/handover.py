"""An add-on that yields: Helm does not see the record of its release, but its marks are on the objects.

So Helm can install a release of the same name, which takes over these objects. Then the add-on forgets its own record.
"""

from __future__ import annotations

from homeport.addons.chart.owner import release_owner
from homeport.addons.name import label_value
from homeport.addons.target.object import Target
from homeport.helm.release.record import HELM, RESERVED, UNINSTALLED, Ledger, Release
from homeport.helm.release.releases import Releases
from homeport.runtime.clock import Clock


async def find_successor(target: Target, clock: Clock, namespace: str, name: str) -> Release | None:
    """The release of this name that somebody installed with Helm. Raises HelmError and ApiError."""
    if not target.yields:
        return None
    history = await Releases(target.client, clock).history(namespace, name)
    if not history or history[-1].status == UNINSTALLED or release_owner(history):
        return None
    return history[-1]


async def collect_records(target: Target, clock: Clock, namespace: str, name: str) -> None:
    """Records of this add-on's release are in one ledger: those that another policy left in the other one are moved."""
    here, there = (RESERVED, HELM) if target.yields else (HELM, RESERVED)
    history = await Releases(target.client, clock, there).history(namespace, name)
    if not history or release_owner(history) != label_value(target.addon.name):
        return
    await _move(target, clock, history, here, there)


async def _move(target: Target, clock: Clock, history: list[Release], here: Ledger, there: Ledger) -> None:
    """Copied first: after a crash, everything is still in one of the two."""
    namespace, name = history[-1].namespace, history[-1].name
    own = Releases(target.client, clock, here)
    known = {each.version for each in await own.history(namespace, name)}
    target.fence()
    await own.record([each for each in history if each.version not in known])
    await Releases(target.client, clock, there).forget(namespace, name)
