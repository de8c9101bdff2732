"""Which kinds move: those whose definitions say so by the labels that clusterctl reads, and Secrets and ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource
from homeport.capi.name import (
    CLUSTERCTL_CORE_LABEL,
    CLUSTERCTL_LABEL,
    GROUP,
    MOVE_HIERARCHY_LABEL,
    MOVE_LABEL,
    PROVIDER_LABEL,
)
from homeport.move.side import CONFIG_MAP, SECRET

# These start a hierarchy though no label says so.
_ROOTS = {(GROUP, "Cluster"), (GROUP, "ClusterClass"), ("addons.cluster.x-k8s.io", "ClusterResourceSet")}


@dataclass(frozen=True, slots=True)
class MovedKind:
    """A kind, in the version in which its objects are read and written."""

    resource: Resource
    moves: bool = False  # its objects move though nothing owns them
    hierarchy: bool = False  # and everything that they own moves with them
    status: bool = False  # status is a resource of its own
    provider: str = ""  # the name in the inventory of who defines it
    problem: str = ""  # why its objects can't move to the target

    @property
    def custom(self) -> bool:
        return bool(self.resource.group)

    @property
    def is_cluster(self) -> bool:
        return (self.resource.group, self.resource.kind) == (GROUP, "Cluster")


BUILT_IN = (MovedKind(SECRET), MovedKind(CONFIG_MAP))


def moved_kinds(source: Iterable[Mapping[str, Any]], target: Iterable[Mapping[str, Any]] | None) -> list[MovedKind]:
    """Of the definitions of both sides. `target` None: objects are read in the version in which they are stored."""
    there = None if target is None else {each["metadata"]["name"]: each for each in target}
    found = [_kind(each, there) for each in source if is_moved(each)]
    return [*sorted(found, key=lambda kind: kind.resource.qualified), *BUILT_IN]


def is_moved(definition: Mapping[str, Any]) -> bool:
    labels = definition["metadata"].get("labels") or {}
    return CLUSTERCTL_LABEL in labels and CLUSTERCTL_CORE_LABEL not in labels


def _kind(definition: Mapping[str, Any], there: Mapping[str, Mapping[str, Any]] | None) -> MovedKind:
    spec, meta = definition["spec"], definition["metadata"]
    labels = meta.get("labels") or {}
    version, problem = _version(definition, there)
    at = next(each for each in spec["versions"] if each["name"] == version)
    names = spec["names"]
    hierarchy = MOVE_HIERARCHY_LABEL in labels or (spec["group"], names["kind"]) in _ROOTS
    return MovedKind(
        Resource(spec["group"], version, names["kind"], names["plural"], spec["scope"] == "Namespaced"),
        moves=hierarchy or MOVE_LABEL in labels,
        hierarchy=hierarchy,
        status="status" in (at.get("subresources") or {}),
        provider=labels.get(PROVIDER_LABEL, ""),
        problem=problem,
    )


def _version(definition: Mapping[str, Any], there: Mapping[str, Mapping[str, Any]] | None) -> tuple[str, str]:
    """The version to use, and why there is none that both sides serve."""
    stored = _stored(definition)
    if there is None:
        return stored, ""
    name = definition["metadata"]["name"]
    other = there.get(name)
    if other is None:
        return stored, f"the target does not serve {name}: install its CustomResourceDefinition there first"
    here, common = _served(definition), _served(definition) & _served(other)
    for version in (stored, _stored(other), *sorted(common, reverse=True)):
        if version in common:
            return version, ""
    versions = ", ".join(sorted(_served(other)))
    text = f"the target serves {name} in {versions}, the source in {', '.join(sorted(here))}: install a newer release"
    return stored, f"{text} on the older side"


def _stored(definition: Mapping[str, Any]) -> str:
    return str(next(each["name"] for each in definition["spec"]["versions"] if each.get("storage")))


def _served(definition: Mapping[str, Any]) -> set[str]:
    return {str(each["name"]) for each in definition["spec"]["versions"] if each.get("served")}
