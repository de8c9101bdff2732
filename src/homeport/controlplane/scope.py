"""One control plane in work: what those of kubeadm and of k0s have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object, Unstructured
from homeport.capi.remote.pki import Certificates
from homeport.capi.remote.workload import Remote
from homeport.client.protocol import Key
from homeport.runtime.cache import key_of
from homeport.runtime.reconciler import Scope

P = TypeVar("P", bound=Object)
C = TypeVar("C")


@dataclass(slots=True)
class OwnedMachine(Generic[C]):
    """A Machine with what was made for it."""

    machine: Machine
    config: C | None = None
    infrastructure: Unstructured | None = None

    @property
    def name(self) -> str:
        return self.machine.metadata.name


class PlaneScope(Scope[P], Generic[P, C]):
    def __init__(self, plane: P, cluster: Cluster | None, now: float) -> None:
        super().__init__(plane)
        self.found_cluster = cluster  # None: no Cluster has adopted it yet, or its Cluster was removed by force
        self.now = now
        self.owned: list[OwnedMachine[C]] = []
        self.certificates: Certificates = {}
        self.remote: Remote | None = None

    @property
    def cluster(self) -> Cluster:
        """For phases of a control plane that has a Cluster."""
        assert self.found_cluster is not None
        return self.found_cluster

    @property
    def cluster_key(self) -> Key:
        return key_of(self.cluster)

    def machine(self, name: str) -> Machine:
        return next(each.machine for each in self.owned if each.name == name)
