"""One TenantControlPlane in work, with what was found and made for it in this loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Unstructured
from homeport.api.steward.v1alpha1 import AnyTenantControlPlane, SecretState
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote.pki import KeyPair
from homeport.hosted import name as names
from homeport.hosted.endpoint import Endpoint
from homeport.hosted.flavour import Flavour
from homeport.hosted.secret import Held
from homeport.hosted.tenant.podinputs import PodInputs
from homeport.hosted.tenant.storage import Storage
from homeport.runtime.clock import rfc3339
from homeport.runtime.reconciler import Scope


@dataclass(slots=True)
class Findings:
    """What this loop found out. None: not known, an earlier phase waits."""

    endpoint: Endpoint | None = None
    service: Unstructured | None = None
    deployment: Unstructured | None = None
    storage: Storage | None = None
    migrating: bool = False
    rolled_out: bool = False
    available: bool = False
    reachable: bool = False
    served: str = ""  # the version that the API server reports; '': not asked in this loop
    refused: bool = False  # the spec asks for what is not possible: nothing is changed
    checksums: dict[str, str] = field(default_factory=dict)
    renewals: list[float] = field(default_factory=list)  # when certificates are due


class TenantScope(Scope[AnyTenantControlPlane]):
    def __init__(self, obj: AnyTenantControlPlane, flavour: Flavour, now: float) -> None:
        super().__init__(obj)
        self.flavour = flavour
        self.now = now
        self.findings = Findings()
        self.ca = KeyPair(b"")
        self.admin = b""  # the administrator's kubeconfig
        self.limited = obj.spec.write_permissions.limited

    @property
    def spec(self) -> Any:
        return self.object.spec

    @property
    def name(self) -> str:
        return self.object.metadata.name

    def part(self, suffix: str) -> str:
        return names.part(self.name, suffix)

    def metadata(self) -> dict[str, Any]:
        """Of what is made for the control plane: garbage collection removes it with the TenantControlPlane."""
        return {
            "labels": names.labels(self.flavour.group, self.name, self.flavour.name),
            "ownerReferences": [owner_reference(self.object, controller=True)],
        }

    def pod_inputs(self, storage: Storage | None = None) -> PodInputs:
        """`storage` None: for the Service, which does not depend on it."""
        endpoint = self.findings.endpoint
        return PodInputs(
            group=self.flavour.group,
            namespace=self.object.metadata.namespace,
            name=self.name,
            spec=self.object.spec,
            storage=storage or Storage("", "etcd", (), "", ""),
            address=endpoint.host if endpoint is not None else "",
            project=self.flavour.name,
            checksums=dict(self.findings.checksums),
        )

    def noted(self, held: Held, before: SecretState | None) -> SecretState:
        """The state of a Secret for the status; the time changes with the content alone."""
        if before is not None and before.checksum == held.checksum and before.secret_name == held.name:
            return before
        return SecretState(checksum=held.checksum, last_update=rfc3339(self.now), secret_name=held.name)

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.object.metadata.annotations
