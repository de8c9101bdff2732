"""A k0smotron Cluster in work."""

from __future__ import annotations

from typing import Any

from homeport.api.k0smotron.v1beta2 import Cluster
from homeport.api.meta import Unstructured
from homeport.capi.remote.pki import KeyPair
from homeport.hosted.endpoint import Endpoint
from homeport.hosted.k0smotron.certificate import Authorities
from homeport.hosted.k0smotron.host import Host
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.hosted.k0smotron.status import AVAILABLE
from homeport.machinery.condition import Status
from homeport.runtime.reconciler import Scope

SUCCESSFUL = "Reconciliation successful"


class ClusterScope(Scope[Cluster]):
    subject: Subject  # set by the first phase
    endpoint: Endpoint  # set when the Service has an address

    def __init__(self, obj: Cluster, now: float) -> None:
        super().__init__(obj)
        self.now = now
        self.host: Host | None = None
        self.service: Unstructured | None = None
        self.statefulset: Unstructured | None = None
        self.etcd: Unstructured | None = None
        self.authorities: Authorities = {}
        self.leaves: dict[str, KeyPair] = {}
        self.config: dict[str, Any] = {}
        self.unfinished = ""  # it can be used, and something is still being changed

    @property
    def required_host(self) -> Host:
        assert self.host is not None
        return self.host

    def report(self, kind: str, status: Status, reason: str, message: str, now: str) -> bool | None:
        if kind == AVAILABLE:
            done = status == "True"
            reason, message = ("Available", self.unfinished) if done else (reason, message)
            self.object.status.deprecated.v1beta1.reconciliation_status = SUCCESSFUL if done else message or reason
        return super().report(kind, status, reason, message, now)
