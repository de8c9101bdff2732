"""Clusters that run, but whose hypervisor can't be asked about them: reported once for each cluster. Pure.

Each of their machines reports the same; a list of them would hide what else is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from homeport.api.meta import Object, Unstructured
from homeport.app.report.description import ClusterState, Finding, Unfinished, Unmanaged
from homeport.capi.name import Condition
from homeport.capi.object.cause import unreachable
from homeport.capi.object.summary import conditions_of
from homeport.machinery.condition import is_true


def unmanaged(obj: Object | Unstructured) -> Unmanaged | None:
    """None: it can be managed, or it does not run, which is worse and reported by itself."""
    conditions = conditions_of(obj)
    said = unreachable(obj, conditions)
    runs = any(is_true(conditions, kind) for kind in (Condition.AVAILABLE, Condition.READY))
    return None if said is None or not runs else Unmanaged(said.message, said.since)


def mark(clusters: Iterable[ClusterState], unfinished: Iterable[Unfinished]) -> list[ClusterState]:
    """Also those of which only the machines report it, because the hypervisor still answers about the rest."""
    first: dict[str, Unmanaged] = {}
    for item in unfinished:
        if item.unmanaged is not None:
            first.setdefault(item.cluster, item.unmanaged)
    return [
        msgspec.structs.replace(each, unmanaged=first.get(_cluster(each))) if each.unmanaged is None else each
        for each in clusters
    ]


def fold(unfinished: Iterable[Unfinished], clusters: Sequence[ClusterState]) -> tuple[list[Finding], list[Unfinished]]:
    """One line for each cluster that can't be managed, and what is left. A cluster that is not healthy has a cause."""
    found = {_cluster(each): (each, each.unmanaged, list[Unfinished]()) for each in clusters if each.healthy}
    left = []
    for item in unfinished:
        state = found.get(item.cluster)
        if item.unmanaged is None or state is None or state[1] is None:
            left.append(item)
        else:
            state[2].append(item)
    findings = [
        Finding(
            each.kind,
            f"{each.namespace}/{each.name}",
            said.message,
            since=said.since,
            same=[f"{item.kind} {item.object.removeprefix('default/')}" for item in items],
        )
        for each, said, items in found.values()
        if said is not None and not each.paused
    ]
    return findings, left


def _cluster(state: ClusterState) -> str:
    return state.cluster or f"{state.namespace}/{state.name}"
