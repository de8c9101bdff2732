"""Values that become labels: what is not allowed in them is replaced, for a Node without its zone helps nobody."""

from __future__ import annotations

import re

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")
_MOST = 63


def label_value(text: str) -> str:
    return _NOT_ALLOWED.sub("-", text)[:_MOST].strip("-_.")
