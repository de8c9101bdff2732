from __future__ import annotations

from typing import Any


def estimate(root: Any, declared: Any) -> int:
    return 0
