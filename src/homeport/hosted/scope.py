"""A hosted control plane in work, with the Cluster that it belongs to: what those of all flavours have in common."""

from __future__ import annotations

from typing import TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi.name import Condition
from homeport.machinery.condition import Status
from homeport.runtime.reconciler import Scope

O = TypeVar("O", bound=Object)


class HostedPlaneScope(Scope[O]):
    def __init__(self, obj: O, cluster: Cluster | None) -> None:
        super().__init__(obj)
        self.found_cluster = cluster  # None: no Cluster has adopted it yet

    @property
    def cluster(self) -> Cluster:
        """For phases of a control plane that has a Cluster."""
        assert self.found_cluster is not None
        return self.found_cluster

    def report(self, kind: str, status: Status, reason: str, message: str, now: str) -> bool | None:
        reason = "Available" if kind == Condition.AVAILABLE and status == "True" else reason
        return super().report(kind, status, reason, message, now)
