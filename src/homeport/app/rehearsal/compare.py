"""Compares the Machines before and after a change. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL

Action = Literal["create", "replace", "delete", "change", "leave"]
ORDER: tuple[Action, ...] = ("replace", "create", "delete", "change", "leave")


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """One Machine. A replaced one is deleted when its successor is ready, or before, as the strategy says."""

    action: Action
    cluster: str  # namespace/name
    owner: str  # `KubeadmControlPlane harbour`, `MachineDeployment workers`
    machine: str  # '': a new one, whose name is not known yet
    before: str = ""  # Kubernetes version
    after: str = ""
    reason: str = ""

    def text(self) -> str:
        return f"{self.action} Machine {self.machine or 'of ' + self.owner}"


def compare(
    before: Iterable[Unstructured],
    after: Iterable[Unstructured],
    reasons: Mapping[str, str] = MappingProxyType({}),
    clusters: Collection[str] = (),
) -> list[Row]:
    """Grouped by owner; of each owner what changes first. `reasons`: why Machines are replaced, by UID.

    Clusters in which nothing changes are left out, except `clusters`.
    """
    old, new = _grouped(before), _grouped(after)
    rows: list[Row] = []
    for owner in sorted({*old, *new}):
        rows += _of_owner(owner, old.get(owner, []), new.get(owner, []), reasons)
    shown = {row.cluster for row in rows if row.action != "leave"} | set(clusters)
    return [row for row in rows if row.cluster in shown]


def _of_owner(
    owner: tuple[str, str, str],
    old: Sequence[Unstructured],
    new: Sequence[Unstructured],
    reasons: Mapping[str, str],
) -> list[Row]:
    cluster, _, name = owner
    here = {each.uid: each for each in new}
    known = {each.uid for each in old}
    gone = [each for each in old if each.uid not in here]
    fresh = [each for each in new if each.uid not in known]
    rows: list[Row] = []
    for number, each in enumerate(gone):
        if number < len(fresh):
            why = reasons.get(each.uid, "")
            rows.append(Row("replace", cluster, name, each.name, _version(each), _version(fresh[number]), why))
        else:
            rows.append(Row("delete", cluster, name, each.name, _version(each)))
    rows += [Row("create", cluster, name, "", "", _version(each)) for each in fresh[len(gone) :]]
    for each in old:
        if each.uid in here:
            same = _version(each) == _version(here[each.uid])
            rows.append(
                Row("leave" if same else "change", cluster, name, each.name, _version(each), _version(here[each.uid]))
            )
    return sorted(rows, key=lambda row: (ORDER.index(row.action), row.machine))


def _grouped(machines: Iterable[Unstructured]) -> dict[tuple[str, str, str], list[Unstructured]]:
    """By cluster and owner; control planes first."""
    found: dict[tuple[str, str, str], list[Unstructured]] = defaultdict(list)
    for each in machines:
        if not each.metadata.get("deletionTimestamp"):
            found[_owner(each)].append(each)
    return found


def _owner(machine: Unstructured) -> tuple[str, str, str]:
    labels = machine.metadata.get("labels") or {}
    cluster = f"{machine.namespace}/{labels.get(CLUSTER_NAME_LABEL, '')}"
    refs = machine.metadata.get("ownerReferences") or ()
    ref = next((each for each in refs if each.get("controller")), refs[0] if refs else {})
    rank = "0" if CONTROL_PLANE_LABEL in labels else "1"
    if DEPLOYMENT_NAME_LABEL in labels:
        return cluster, rank, f"MachineDeployment {labels[DEPLOYMENT_NAME_LABEL]}"
    return cluster, rank, f"{ref.get('kind', 'no owner')} {ref.get('name', '')}".rstrip()


def _version(machine: Unstructured) -> str:
    return str((machine.get("spec") or {}).get("version") or "")
