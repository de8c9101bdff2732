"""What a Machine says about its Node: labels, annotations and taints by domain, as one patch. Pure.

What was set is remembered in annotations of the Node, so that what the Machine drops is dropped there too and what
others have set stays. The taint that keeps work away until labels are there goes in the same patch as they come.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Unstructured
from homeport.capi import name
from homeport.capi.object.ownership import controller_of

_LABEL_DOMAINS = (name.NODE_RESTRICTION_DOMAIN, name.MANAGED_NODE_DOMAIN)
_ANNOTATION_DOMAINS = (name.MANAGED_NODE_DOMAIN,)
_ALWAYS = (
    name.NODE_CLUSTER_NAME,
    name.NODE_CLUSTER_NAMESPACE,
    name.NODE_MACHINE,
    name.NODE_OWNER_KIND,
    name.NODE_OWNER_NAME,
)

Taint = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Propagation:
    """Further labels and annotations that go to Nodes, by pattern, where the domains are not enough."""

    labels: tuple[re.Pattern[str], ...] = ()
    annotations: tuple[re.Pattern[str], ...] = ()


def managed_labels(labels: Mapping[str, str], also: Iterable[re.Pattern[str]] = ()) -> dict[str, str]:
    """Those of a Machine's labels that belong on its Node."""
    also = tuple(also)
    return {
        key: value
        for key, value in labels.items()
        if key.partition("/")[0] == name.NODE_ROLE_PREFIX
        or _in(key, _LABEL_DOMAINS)
        or any(p.search(key) for p in also)
    }


def managed_annotations(machine: Machine, also: Iterable[re.Pattern[str]] = ()) -> dict[str, str]:
    also = tuple(also)
    found = {
        key: value
        for key, value in machine.metadata.annotations.items()
        if _in(key, _ANNOTATION_DOMAINS) or any(p.search(key) for p in also)
    }
    found[name.NODE_CLUSTER_NAME] = machine.spec.cluster_name
    found[name.NODE_CLUSTER_NAMESPACE] = machine.metadata.namespace
    found[name.NODE_MACHINE] = machine.metadata.name
    owner = controller_of(machine)
    if owner is not None:
        found[name.NODE_OWNER_KIND], found[name.NODE_OWNER_NAME] = owner["kind"], owner["name"]
    return found


def node_patch(
    node: Unstructured,
    machine: Machine,
    *,
    interruptible: bool = False,
    outdated: bool = False,
    also: Propagation | None = None,
) -> dict[str, Any] | None:
    """The merge patch that makes the Node say what its Machine says; None when it does already."""
    also = also or Propagation()
    had_labels: dict[str, str] = node.metadata.get("labels") or {}
    had: dict[str, str] = node.metadata.get("annotations") or {}
    labels = managed_labels(machine.metadata.labels, also.labels)
    if interruptible:
        labels[name.INTERRUPTIBLE_LABEL] = ""
    annotations = managed_annotations(machine, also.annotations)
    taints, tracked = _taints(node, machine, outdated)
    kept = sorted(set(annotations) - set(_ALWAYS))

    changed_labels = _changes(had_labels, labels, _split(had.get(name.LABELS_FROM_MACHINE)))
    changed_annotations = _changes(had, annotations, {*_split(had.get(name.ANNOTATIONS_FROM_MACHINE)), *_ALWAYS})
    records = {
        name.LABELS_FROM_MACHINE: ",".join(sorted(labels)),
        name.ANNOTATIONS_FROM_MACHINE: ",".join(kept),
        name.TAINTS_FROM_MACHINE: tracked,
    }
    changed_annotations |= {key: value for key, value in records.items() if had.get(key) != value}

    patch: dict[str, Any] = {}
    changed = {"labels": changed_labels, "annotations": changed_annotations}
    metadata = {part: values for part, values in changed.items() if values}
    if taints != ((node.get("spec") or {}).get("taints") or []):
        patch["spec"] = {"taints": taints or None}
    if not metadata and not patch:
        return None
    # Taints are replaced whole: somebody else's that came in between must not get lost.
    patch["metadata"] = {**metadata, "resourceVersion": node.resource_version}
    return patch


def _taints(node: Unstructured, machine: Machine, outdated: bool) -> tuple[list[Taint], str]:
    """(the desired taints of the Node, those of them that follow the Machine from now on)."""
    taints: list[Taint] = list((node.get("spec") or {}).get("taints") or ())
    taints = _without(taints, **name.UNINITIALIZED_TAINT)
    tracked: str | None = (node.metadata.get("annotations") or {}).get(name.TAINTS_FROM_MACHINE)
    always, once = set(), set()
    for taint in machine.spec.taints:
        tag = f"{taint.key}:{taint.effect}"
        if taint.propagation == "Always":
            always.add(tag)
        else:
            once.add(tag)
            if tracked is not None:
                continue  # given when the Node was new; what became of it since is not ours
        taints = _with(taints, taint.key, taint.effect, taint.value or "")
    for tag in _split(tracked) - always - once:
        key, _, effect = tag.rpartition(":")
        taints = _without(taints, key, effect)
    taints = (
        _with(taints, value="", **name.OUTDATED_REVISION_TAINT)
        if outdated
        else _without(taints, **name.OUTDATED_REVISION_TAINT)
    )
    return taints, ",".join(sorted(always))


def _with(taints: Sequence[Taint], key: str, effect: str, value: str) -> list[Taint]:
    wanted: Taint = {"key": key, "effect": effect, **({"value": value} if value else {})}
    result = list(taints)
    for i, taint in enumerate(result):
        if (taint.get("key"), taint.get("effect")) == (key, effect):
            if taint.get("value", "") != value:
                result[i] = wanted
            return result
    return [*result, wanted]


def _without(taints: Sequence[Taint], key: str, effect: str) -> list[Taint]:
    return [taint for taint in taints if (taint.get("key"), taint.get("effect")) != (key, effect)]


def _changes(had: Mapping[str, str], want: Mapping[str, str], ours: Iterable[str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {key: None for key in ours if key not in want and key in had}
    changes |= {key: value for key, value in want.items() if had.get(key) != value}
    return changes


def _split(text: str | None) -> set[str]:
    return set(text.split(",")) if text else set()


def _in(key: str, domains: Sequence[str]) -> bool:
    domain = key.partition("/")[0]
    return any(domain == each or domain.endswith(f".{each}") for each in domains)
