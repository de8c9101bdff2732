"""What is still to be applied, and what is written down about it. Bindings are plain lists, as on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]
Bindings = list[Json]  # spec.bindings of a ClusterResourceSetBinding

APPLY_ONCE = "ApplyOnce"
RECONCILE = "Reconcile"


class Ref(NamedTuple):
    """A resource of a set."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Outcome(NamedTuple):
    """How it went with one resource in one Cluster."""

    ref: Ref
    digest: str
    applied: bool


class RecordedResource(NamedTuple):
    """What the ClusterResourceSetBinding records about one resource."""

    digest: str
    applied: bool


def recorded(bindings: Iterable[Mapping[str, Any]], set_name: str) -> dict[Ref, Mapping[str, Any]]:
    """The entries of a set's resources."""
    found = next((each for each in bindings if each.get("clusterResourceSetName") == set_name), {})
    return {Ref(each["kind"], each["name"]): each for each in found.get("resources") or ()}


def is_due(strategy: str, known: RecordedResource | None, digest: str) -> bool:
    """Once it was applied, nothing is; with Reconcile, what is written there now has to be what was applied."""
    if known is None or not known.applied:
        return True
    return strategy == RECONCILE and known.digest != digest


def with_outcomes(bindings: Sequence[Json], set_name: str, outcomes: Iterable[Outcome], now: str) -> Bindings:
    """The bindings with what has become of the set's resources. What failed again as before is left as it was."""
    known = recorded(bindings, set_name)
    entries: dict[Ref, Json] = {ref: dict(each) for ref, each in known.items()}
    for ref, digest, applied in outcomes:
        before = known.get(ref)
        if before is not None and not applied and not before.get("applied") and before.get("hash") == digest:
            continue
        entries[ref] = {
            "kind": ref.kind,
            "name": ref.name,
            "hash": digest,
            "applied": applied,
            "lastAppliedTime": now,
        }
    made = {"clusterResourceSetName": set_name, "resources": list(entries.values())}
    result = [dict(each) for each in bindings]
    for i, each in enumerate(result):
        if each.get("clusterResourceSetName") == set_name:
            result[i] = made
            return result
    return [*result, made]


def without_set(bindings: Iterable[Mapping[str, Any]], set_name: str) -> Bindings:
    return [dict(each) for each in bindings if each.get("clusterResourceSetName") != set_name]
