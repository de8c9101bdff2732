"""One KubeadmConfig in work, with whom it is for."""

from __future__ import annotations

from typing import Any

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.bootstrap.kubeadm.configuration import Facts
from homeport.bootstrap.kubeadm.status import AVAILABLE, Finding, missing, put_conditions
from homeport.bootstrap.owner import Owner
from homeport.bootstrap.scope import BootstrapScope
from homeport.machinery import condition

Json = dict[str, Any]


class ConfigScope(BootstrapScope[KubeadmConfig]):
    def __init__(self, config: KubeadmConfig, owner: Owner, cluster: Cluster) -> None:
        super().__init__(config, owner, cluster)
        self.certificates: Finding | None = None  # None: not looked at in this loop

    @property
    def join(self) -> Json:
        made: Json = wire(self.object.spec.join_configuration)
        return made

    def facts(self) -> Facts:
        network = self.cluster.spec.cluster_network
        return Facts(
            cluster_name=self.cluster.metadata.name,
            kubernetes_version=self.owner.version,
            endpoint=self.endpoint,
            pod_cidrs=tuple(network.pods.cidr_blocks),
            service_cidrs=tuple(network.services.cidr_blocks),
            dns_domain=network.service_domain,
        )

    def finish(self, secret_name: str) -> None:
        """The data are there, in this Secret."""
        self.certificates = AVAILABLE
        super().finish(secret_name)

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """What the loop ended with, as the conditions of this kind. Once the data are there, a wait is for a timer."""
        held = self.object.status
        generation = self.object.metadata.generation
        before = _said(held.conditions)
        data = AVAILABLE if self.created else missing(message)
        certificates = AVAILABLE if self.created else self.certificates
        held.conditions = put_conditions(
            held.conditions, data=data, certificates=certificates, now=now, generation=generation
        )
        if self.created:
            held.observed_generation = generation
        return _said(held.conditions) != before


def _said(conditions: list[Json]) -> list[tuple[Any, ...]]:
    return [(each["type"], each["status"], each["reason"], each["message"]) for each in conditions]
