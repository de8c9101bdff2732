"""Workloads in a namespace that is being deleted."""

from __future__ import annotations

from homeport.client.errors import Forbidden
from homeport.client.protocol import Key
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reconciler


class NamespaceAware:
    """Waits where the server refuses new objects because their namespace is being deleted: that ends by itself."""

    def __init__(self, reconciler: Reconciler) -> None:
        self._reconciler = reconciler

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            return await self._reconciler.reconcile(key)
        except Forbidden as refusal:
            if any(cause.reason == "NamespaceTerminating" for cause in refusal.causes):
                return Wait("NamespaceTerminating", quiet=True)
            raise
