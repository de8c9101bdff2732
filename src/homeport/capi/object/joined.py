"""Whether a Machine has joined its cluster: as a Node, or as a controller that never becomes one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.capi.name import Condition
from homeport.machinery import condition


def controller_of_cluster(conditions: Iterable[Mapping[str, Any]] | None) -> Mapping[str, Any] | None:
    """How a controller without a Node is. None: the Machine becomes a Node, or its controller has not joined yet."""
    return condition.find(conditions, Condition.CONTROLLER_HEALTHY)


def has_joined(node: object, conditions: Iterable[Mapping[str, Any]] | None) -> bool:
    """`node`: status.nodeRef of the Machine."""
    return bool(node) or controller_of_cluster(conditions) is not None
