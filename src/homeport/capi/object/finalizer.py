"""Finalizers in admission."""

from __future__ import annotations

from typing import Any


def hold_from_start(obj: dict[str, Any], old: dict[str, Any] | None, finalizer: str) -> None:
    """Here it costs no write of its own, and the object can't vanish unseen at any moment."""
    if old is None:
        finalizers = obj["metadata"]["finalizers"] = obj["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            finalizers.append(finalizer)
