"""What a config says about its Node, as one patch: provider ID, labels and taints. Pure.

Kubelet sets labels and taints only when the Node registers, and some labels never. What was set is kept in annotations
of the Node, so that what the config drops is dropped there, too, and what others set stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.k0s.argument import Arguments, parse_taint

Json = dict[str, Any]

LABELS_ANNOTATION = "k0s.homeport.dev/labels"
TAINTS_ANNOTATION = "k0s.homeport.dev/taints"


class OtherProviderID(Exception):
    """The Node says that it is another machine."""


def node_patch(node: Unstructured, given: Arguments, provider_id: str) -> Json | None:
    """The merge patch for what is missing; None when nothing is. Raises OtherProviderID."""
    spec: Json = {}
    has = str((node.get("spec") or {}).get("providerID") or "")
    if provider_id and not has:
        spec["providerID"] = provider_id
    elif provider_id and has != provider_id and not provider_id.endswith(has.rpartition("/")[2]):
        raise OtherProviderID(has)
    had: Mapping[str, str] = node.metadata.get("annotations") or {}
    labels = _label_changes(node, given, had)
    annotations = _notes(given, had)
    taints, changed = _taints(node, given, had)
    if changed:
        spec["taints"] = taints or None
    metadata = {name: value for name, value in (("labels", labels), ("annotations", annotations)) if value}
    if not spec and not metadata:
        return None
    # Taints are replaced whole: somebody else's that came in between must not get lost.
    patch: Json = {"metadata": {**metadata, "resourceVersion": node.resource_version}}
    return {**patch, "spec": spec} if spec else patch


def _label_changes(node: Unstructured, given: Arguments, had: Mapping[str, str]) -> dict[str, str | None]:
    there: Mapping[str, str] = node.metadata.get("labels") or {}
    dropped = _split(had.get(LABELS_ANNOTATION)) - set(given.labels)
    changes: dict[str, str | None] = {key: None for key in dropped if key in there}
    changes |= {key: value for key, value in given.labels.items() if there.get(key) != value}
    return changes


def _notes(given: Arguments, had: Mapping[str, str]) -> dict[str, str | None]:
    wanted = {
        LABELS_ANNOTATION: ",".join(sorted(given.labels)),
        TAINTS_ANNOTATION: ",".join(sorted(_tag(parse_taint(each)) for each in given.taints)),
    }
    return {key: value or None for key, value in wanted.items() if had.get(key, "") != value}


def _taints(node: Unstructured, given: Arguments, had: Mapping[str, str]) -> tuple[list[Json], bool]:
    """(the taints of the Node, whether they are others than now)."""
    there: list[Json] = list((node.get("spec") or {}).get("taints") or ())
    wanted = {_tag(taint): taint for taint in map(parse_taint, given.taints)}
    dropped = _split(had.get(TAINTS_ANNOTATION)) - set(wanted)
    kept = [wanted.get(_tag(taint), taint) if _value_differs(taint, wanted) else taint for taint in there]
    kept = [taint for taint in kept if _tag(taint) not in dropped]
    known = {_tag(taint) for taint in kept}
    result = [*kept, *(taint for tag, taint in wanted.items() if tag not in known)]
    return result, result != there


def _value_differs(taint: Mapping[str, Any], wanted: Mapping[str, Json]) -> bool:
    found = wanted.get(_tag(taint))
    return found is not None and found.get("value", "") != taint.get("value", "")


def _tag(taint: Mapping[str, Any]) -> str:
    return f"{taint['key']}:{taint['effect']}"


def _split(text: str | None) -> set[str]:
    return set(text.split(",")) if text else set()
