"""Machines at a vendor that carry a cluster's mark and belong to no object: found, judged, and rarely removed.

Such a machine may be left over, or it may be a healthy Node whose objects were lost: after a restore of an older
backup, a half-finished move, or in a copy of a plane. The difference can't be seen at the vendor. So a machine is
removed only with proof: this plane saw its object being deleted, and the workload cluster answers and does not know the
machine. Everything else is reported and left to the user (`homeport orphans`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from homeport.infra.orphan.record import Deletion
from homeport.infra.orphan.witness import Role, Statement
from homeport.infra.protocol import Owned

PATIENCE_SECONDS = 600.0
COPIED = "it is not the machine of the object that was deleted: it seems to be a copy that a user made"
SILENT = "the workload cluster does not report whether it uses the machine"


@dataclass(frozen=True, slots=True)
class Orphan:
    """`kept`: why it is not removed; '' when it is proven that nobody needs it."""

    owned: Owned
    kept: str = ""
    role: Role | None = None

    @property
    def may_be_used(self) -> bool:
        """The workload cluster uses it, or can't be asked."""
        return self.role is not None or self.kept.startswith(SILENT)

    def __str__(self) -> str:
        return f"{self.owned.name} ({self.owned.id})" + (f": {self.kept}" if self.kept else "")


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known beside the machines themselves."""

    deletions: Mapping[str, Deletion] = field(default_factory=dict)  # by UID of the InfraMachine
    statement: Statement = field(default_factory=Statement)
    members: frozenset[str] | None = None  # names and addresses of etcd's members; None: not known
    missing: tuple[str, ...] = ()  # machines that objects name and the vendor does not list


def orphans_of(
    owned: Iterable[Owned], cluster_uid: str, known_uids: frozenset[str], known_ids: frozenset[str]
) -> list[Owned]:
    """Machines with this InfraCluster's mark that no InfraMachine accounts for.

    A machine with the mark of another InfraCluster, even one of the same name, is not ours. One that an InfraMachine
    names by its id is in use whatever its mark says: objects that were moved have other UIDs.
    """
    return [
        each
        for each in owned
        if each.uid and each.cluster_uid == cluster_uid and each.uid not in known_uids and each.id not in known_ids
    ]


def judge(orphans: Sequence[Owned], evidence: Evidence) -> list[Orphan]:
    roles = evidence.statement.roles
    found = [Orphan(each, _objection(each, evidence), roles.get(each.id)) for each in orphans]
    # While one machine that runs has lost its objects, the state of this plane is not to be trusted for the others.
    doubt = next((each for each in found if each.role is not None or each.owned.uid not in evidence.deletions), None)
    if doubt is None and not evidence.missing:
        return found
    text = (
        f"machine {doubt.owned.name} must be adopted or removed first"
        if doubt is not None
        else f"machine {evidence.missing[0]} of the cluster is missing at the infrastructure"
    )
    return [Orphan(each.owned, each.kept or text, each.role) for each in found]


def _objection(machine: Owned, evidence: Evidence) -> str:
    role = evidence.statement.roles.get(machine.id)
    if role is not None:
        return f"it {role}"
    if evidence.statement.silent:
        return f"{SILENT}: {evidence.statement.silent}"
    deletion = evidence.deletions.get(machine.uid)
    if deletion is None:
        return "this plane has no record that its object was deleted: the object may be newer than a restored backup"
    if not deletion.concerns(machine):
        return COPIED
    if not deletion.control_plane:
        return ""
    if evidence.members is None:
        return "the etcd members of the workload cluster have not been checked since its object was deleted"
    if not evidence.members.isdisjoint((machine.name, *machine.addresses)):
        return "it is a member of etcd of the workload cluster"
    return ""


@dataclass(slots=True)
class Sweep:
    """The memory of one cluster's sweep."""

    first_seen: dict[str, float] = field(default_factory=dict)  # since when a machine is proven to be left over
    last: float = float("-inf")  # when it was done
    _reported: set[str] = field(default_factory=set)

    def ripe(self, orphans: Iterable[Orphan], now: float) -> list[Orphan]:
        """Those for whose removal the proof has held for long enough."""
        proven = [each for each in orphans if not each.kept]
        held = {each.owned.id for each in proven}
        self.first_seen = {id_: since for id_, since in self.first_seen.items() if id_ in held}
        for each in proven:
            self.first_seen.setdefault(each.owned.id, now)
        return [each for each in proven if now - self.first_seen[each.owned.id] >= PATIENCE_SECONDS]

    def news(self, orphans: Iterable[Orphan]) -> list[Orphan]:
        """Those that were not reported before."""
        fresh = [each for each in orphans if each.owned.id not in self._reported]
        self._reported |= {each.owned.id for each in fresh}
        return fresh
