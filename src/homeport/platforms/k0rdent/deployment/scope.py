"""One ClusterDeployment in work, and what it refers to."""

from __future__ import annotations

from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    ClusterDeployment,
)
from homeport.platforms.k0rdent.deployment.neighbour import Neighbours, owns
from homeport.platforms.k0rdent.deployment.state import OPTIONAL, READY, READY_MESSAGE, SUCCEEDED, Finding
from homeport.runtime.reconciler import Scope


class DeploymentScope(Scope[ClusterDeployment]):
    def __init__(self, obj: ClusterDeployment, near: Neighbours) -> None:
        super().__init__(obj)
        self.near = near
        self.findings: list[Finding] = []
        self.addons: list[str] = []  # names of the ClusterAddons that come with the template
        self.seconds: float | None = None  # until the next look, if no event comes first

    @property
    def name(self) -> str:
        return self.object.metadata.name

    @property
    def namespace(self) -> str:
        return self.object.metadata.namespace

    @property
    def foreign(self) -> bool:
        """A Cluster of this name exists and belongs to somebody else."""
        cluster = self.near.cluster
        return cluster is not None and not owns(self.object, cluster)

    def note(self, finding: Finding, now: str) -> None:
        self.findings.append(finding)
        super().report(finding.kind, finding.status, finding.reason, finding.message, now)

    def look_after(self, seconds: float) -> None:
        self.seconds = seconds if self.seconds is None else min(seconds, self.seconds)

    def drop_absent(self) -> None:
        """Conditions of what the spec no longer asks for."""
        found = {each.kind for each in self.findings}
        status = self.object.status
        status.conditions = [
            each for each in status.conditions if each["type"] in found or each["type"] not in OPTIONAL
        ]

    def report(self, kind: str, status: Any, reason: str, message: str, now: str) -> bool | None:
        if (kind, status) == (READY, "True"):
            reason, message = SUCCEEDED, READY_MESSAGE
        return super().report(kind, status, reason, message, now)
