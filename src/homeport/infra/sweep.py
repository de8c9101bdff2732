"""Machines at a vendor that carry our mark and belong to no object any more: found, told, and removed by who may.

Such a machine is left over when a create was answered to nobody and the object went away before the next look. It is
reported at once and removed only if its InfraMachine is seen to be gone twice, a while apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from homeport.infra.protocol import Owned

PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class Sweep:
    """The memory of one cluster's sweep. `plan` says which orphans there are and which of them may go."""

    first_seen: dict[str, float] = field(default_factory=dict)
    last: float = float("-inf")  # when it was done
    _told: set[str] = field(default_factory=set)

    def plan(
        self,
        owned: Iterable[Owned],
        cluster_uid: str,
        known_uids: frozenset[str],
        known_ids: frozenset[str],
        now: float,
    ) -> tuple[list[Owned], list[Owned]]:
        """(orphans, those that have been orphans for long enough to be removed).

        A machine with the mark of another InfraCluster, though of one that is called the same, is none of ours; one
        that an InfraMachine names by its id is in use, whatever its mark says: what is moved gets another UID.
        """
        orphans = [
            each
            for each in owned
            if each.uid and each.cluster_uid == cluster_uid and each.uid not in known_uids and each.id not in known_ids
        ]
        seen = {each.id for each in orphans}
        self.first_seen = {id_: since for id_, since in self.first_seen.items() if id_ in seen}
        for each in orphans:
            self.first_seen.setdefault(each.id, now)
        ripe = [each for each in orphans if now - self.first_seen[each.id] >= PATIENCE_SECONDS]
        return orphans, ripe

    def news(self, orphans: Iterable[Owned]) -> list[Owned]:
        """Those that were not told of before."""
        fresh = [each for each in orphans if each.id not in self._told]
        self._told |= {each.id for each in fresh}
        return fresh
