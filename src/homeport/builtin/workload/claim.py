"""Claims are bound at once: a runner keeps a folder per claim, and there is always room for one more."""

from __future__ import annotations

from typing import Any

from homeport.client.errors import NotFound
from homeport.client.protocol import Key, Write
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import CLAIM, deleting, spec_of, status_of
from homeport.runtime.workload.replicaset import write_status
from homeport.runtime.workload.runner import Runners

_WRITE = Write(field_manager="persistentvolume-binder")


class ClaimReconciler:
    """Only claims that name no volume, and no class or ours: others are somebody else's to bind."""

    def __init__(self, client: Any, runners: Runners, classes: tuple[str, ...] = ("", "homeport")) -> None:
        self._client = client
        self._runners = runners
        self._classes = classes

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            claim = await self._client.get(CLAIM, key)
        except NotFound:
            self._runners.forget_claim(key.namespace, key.name)
            return None
        spec = spec_of(claim)
        if deleting(claim) or spec.get("volumeName") or (spec.get("storageClassName") or "") not in self._classes:
            return None
        if status_of(claim).get("phase") == "Bound":
            return None
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or [],
            "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "1Gi")},
        }
        await write_status(self._client, CLAIM, claim, status, _WRITE)
        return None
