"""Merging of values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Json:
    """Maps are merged, everything else is replaced, null removes: as Helm merges values."""
    made = dict(base)
    for key, value in over.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(made.get(key), Mapping):
            made[key] = merged(made[key], value)
        else:
            made[key] = value
    return made
