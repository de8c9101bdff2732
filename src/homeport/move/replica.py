"""What an object becomes on the target: new UIDs of its owners, paused, and marked with what it is a copy of."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from homeport.api.meta import Unstructured
from homeport.capi.name import DELETE_FOR_MOVE, PAUSED
from homeport.capi.object.paused import annotations_of
from homeport.move.node import Node

MARK = "move.homeport.dev/copy-of"

_OF_SERVER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
    "generateName",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
# Annotations that are about the move itself.
_OF_MOVE = (MARK, DELETE_FOR_MOVE)


class Mark(msgspec.Struct, frozen=True, rename="camel"):
    """Which object of the source this is a copy of. `resource_version` '': the copy is not complete."""

    move: str
    uid: str
    resource_version: str = ""
    paused: bool = False  # the annotation that pauses it is the user's own, and stays

    def render(self) -> str:
        return msgspec.json.encode(self).decode()


def mark_of(obj: Mapping[str, Any]) -> Mark | None:
    text = annotations_of(obj).get(MARK)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Mark)
    except msgspec.MsgspecError:
        return Mark("", "")


def render_copy(node: Node, mark: Mark, uids: Mapping[str, str]) -> dict[str, Any]:
    """`uids`: of the target, by those of the source. Owners that do not move are left out."""
    body = copy.deepcopy(dict(node.obj))
    body.pop("status", None)
    meta = {name: value for name, value in node.obj.metadata.items() if name not in _OF_SERVER}
    refs = [
        {**ref, "uid": uids[ref["uid"]]} for ref in node.obj.metadata.get("ownerReferences") or () if ref["uid"] in uids
    ]
    meta.pop("ownerReferences", None)
    annotations = {name: text for name, text in annotations_of(node.obj).items() if name not in _OF_MOVE}
    annotations |= {MARK: mark.render(), **({PAUSED: ""} if node.kind.custom and PAUSED not in annotations else {})}
    at = node.kind.resource
    return {
        **body,
        **at.type_meta,
        "metadata": {**meta, "annotations": annotations, **({"ownerReferences": refs} if refs else {})},
    }


def render_status(node: Node, generation: int) -> dict[str, Any]:
    """The status, whose generations are those of the copy: what was reported of the newest spec still is.

    What was reported of an older one says nothing about the copy, which has only one.
    """
    before = int(node.obj.metadata.get("generation") or 0)

    def observed(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {name: observed(item) for name, item in value.items() if name != "observedGeneration"}
            return {**kept, **({"observedGeneration": generation} if value.get("observedGeneration") == before else {})}
        return [observed(item) for item in value] if isinstance(value, list) else value

    found: dict[str, Any] = observed(node.status)
    return found


def same_content(node: Node, there: Unstructured) -> bool:
    """Whether an object that the target has already says the same: sharing it changes nothing."""
    fields = ("spec", "data", "stringData", "binaryData", "type", "immutable")
    return all(node.obj.get(field) == there.get(field) for field in fields)
