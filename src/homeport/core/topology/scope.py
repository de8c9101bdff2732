"""A Cluster with a topology, in work."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.name import Condition, Reason
from homeport.capi.object import summary
from homeport.machinery import condition
from homeport.runtime.reconciler import Scope


class TopologyScope(Scope[Cluster]):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.news: dict[str, list[str]] = {}  # what was done, by the reason of the event that tells it

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """In the words that everybody knows."""
        if self.deleting:
            status, reason = "False", Reason.DELETING
            message = "the objects of the topology are deleted with the Cluster"
        elif status == "True":
            reason = Reason.RECONCILE_SUCCEEDED
        elif reason == "ReconcileError":
            reason = Reason.RECONCILE_FAILED
        news = super().report(Condition.TOPOLOGY_RECONCILED, status, reason, message, now)
        self.object.status.conditions = summary.ordered(self.object.status.conditions)
        return news
