"""Claims are bound at once: a runner keeps a folder per claim, and there is always room for one more.

A claim that is deleted stays while a Pod uses it, as in Kubernetes: its folder has the data of a program that runs.
"""

from __future__ import annotations

import contextlib
from typing import Any

from homeport.api.meta import Unstructured
from homeport.apiserver.kinds.cluster.storage import CLAIM_PROTECTION
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import CLAIM, POD, deleting, phase, spec_of, status_of
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
        if deleting(claim):
            await self._release(key, claim)
            return None
        spec = spec_of(claim)
        if spec.get("volumeName") or (spec.get("storageClassName") or "") not in self._classes:
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

    async def _release(self, key: Key, claim: Unstructured) -> None:
        """The Pods are read from the server: one that the cache does not have yet may use the claim."""
        kept = [each for each in claim.metadata.get("finalizers") or () if each != CLAIM_PROTECTION]
        pods = (await self._client.list(POD, Query(namespace=key.namespace))).items
        if len(kept) == len(claim.metadata.get("finalizers") or ()) or any(key in claims_of(pod) for pod in pods):
            return
        patch = MergePatch({"metadata": {"finalizers": kept or None, "resourceVersion": claim.resource_version}})
        with contextlib.suppress(NotFound):
            await self._client.patch(CLAIM, key, patch, _WRITE)


def claims_of(pod: Unstructured) -> list[Key]:
    """The claims that a Pod uses. One that has finished uses none."""
    if phase(pod) in ("Succeeded", "Failed"):
        return []
    return mounted(pod)


def mounted(pod: Unstructured) -> list[Key]:
    given = [each.get("persistentVolumeClaim") for each in spec_of(pod).get("volumes") or ()]
    return [Key(pod.namespace, str(each["claimName"])) for each in given if each]
