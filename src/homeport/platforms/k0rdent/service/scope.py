"""One ServiceSet in work: its ClusterAddons, and the other ServiceSets of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.k0rdent.v1beta1 import ServiceSet
from homeport.api.k0rdent.v1beta1.multicluster import ServiceWithValues
from homeport.machinery import condition
from homeport.platforms.k0rdent.service.render import addon_name
from homeport.platforms.k0rdent.service.settings import read_settings
from homeport.runtime.reconciler import Scope

PROFILE = "ServiceSetProfile"
COLLECTED = "ServiceSetStatusesCollected"
SERVICES = "ServicesInReadyState"


class SetScope(Scope[ServiceSet]):
    def __init__(
        self, obj: ServiceSet, own: Mapping[str, ClusterAddon], others: Sequence[ServiceSet], *, paused: bool
    ) -> None:
        super().__init__(obj)
        self.own = own  # by name; from caches, not to be changed
        self.others = others
        self.paused = paused
        self.settings = read_settings(obj.spec.provider.config)
        self.shown: set[str] = set()  # names of ClusterAddons that are as they were applied last
        self.message = ""
        self.kubernetes = ""  # version of the cluster
        self.cluster = ""  # name of the Cluster

    def addon(self, service: ServiceWithValues) -> ClusterAddon | None:
        return self.own.get(addon_name(self.object, service.namespace, service.name))

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        if (kind, status) == (SERVICES, "True"):
            reason, message = "Succeeded", self.message
        return super().report(kind, status, reason, message, now)
