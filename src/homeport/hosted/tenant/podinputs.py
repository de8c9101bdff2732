"""Everything that decides what the Pods of a control plane are, and where their files are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.api.steward.v1alpha1 import TenantControlPlaneSpec
from homeport.hosted import name as names
from homeport.hosted.tenant.storage import KINE_IMAGE, Storage

PKI = "/etc/kubernetes/pki"
CONF = "/etc/kubernetes"
EGRESS = "/etc/kubernetes/konnectivity"
EGRESS_FILE = "egress-selector-configuration.yaml"
SOCKETS = "/run/konnectivity"
KINE = "/kine"
KINE_TLS = "/etc/kine"


@dataclass(frozen=True, slots=True)
class PodInputs:
    """Everything that decides what the Pods are. `address` is the host of the endpoint: an IP or a name."""

    group: str  # of the kind: annotations and labels begin with it
    namespace: str
    name: str
    spec: TenantControlPlaneSpec
    storage: Storage
    address: str
    project: str = "steward"
    kine_image: str = KINE_IMAGE
    checksums: Mapping[str, str] = field(default_factory=dict)  # of Secrets: a change restarts the Pods

    @property
    def port(self) -> int:
        return self.spec.network_profile.port

    @property
    def version(self) -> str:
        return "v" + self.spec.kubernetes.version.removeprefix("v")

    @property
    def konnectivity(self) -> bool:
        return self.spec.addons.konnectivity is not None

    def secret(self, suffix: str) -> str:
        return names.part(self.name, suffix)
