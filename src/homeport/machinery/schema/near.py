"""Which declared field a user may have meant by an unknown one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

_STEP = re.compile(r"[^.\[\]]+|\[\d+\]")
_CLOSE = 0.6


def near_field(schema: Mapping[str, Any], path: str) -> str:
    """For `spec.workers.machineTemplate.diskSise` `diskSize`; '' if no field beside it comes near."""
    *above, name = _STEP.findall(path)
    for step in above:
        below = schema.get("items") if step.startswith("[") else (schema.get("properties") or {}).get(step)
        if below is None:
            below = schema.get("additionalProperties")
        if not isinstance(below, Mapping):
            return ""
        schema = below
    known = {each.lower(): each for each in schema.get("properties") or ()}
    found = difflib.get_close_matches(name.lower(), [*known], n=1, cutoff=_CLOSE)
    return known[found[0]] if found else ""
