"""What the reconcilers of Deployments, ReplicaSets, StatefulSets and Jobs have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import find_object
from homeport.client.protocol import Key
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import Owned


class WorkloadReconciler(ABC):
    """Reads the object live: on the plane through its client, in simulated clusters through a view of one pass."""

    kind: Resource

    def __init__(self, client: Any, pods: Owned, clock: Clock) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock

    async def reconcile(self, key: Key) -> Wait | None:
        owner = await find_object(self._client, self.kind, key)
        if owner is None:
            return None
        return await self.converge(owner)

    @abstractmethod
    async def converge(self, owner: Unstructured) -> Wait | None:
        """Makes and deletes what belongs to the object, and writes its status."""
