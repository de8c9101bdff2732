"""Values of labels: characters that are not allowed are replaced, so that a Node always gets its zone label."""

from __future__ import annotations

import re

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")
_MOST = 63


def label_value(text: str) -> str:
    return _NOT_ALLOWED.sub("-", text)[:_MOST].strip("-_.")
