"""What a user chooses for a new cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Api = Literal["cluster-api", "tenant", "deployment"]
APIS: tuple[Api, ...] = ("cluster-api", "tenant", "deployment")
CNIS = ("cilium", "calico", "flannel", "none")
# Options that an API has no place for, and where it has it instead.
_UNUSED: dict[Api, dict[str, str]] = {
    "cluster-api": {
        "credential": "use --secret",
        "provider_config": "use --secret",
        "template": "use --image and --network",
    },
    "tenant": {
        **dict.fromkeys(("secret", "credential", "address", "place", "network"), "the ProviderConfig names it"),
        "endpoint": "the address comes from a pool",
        "control_planes": "set spec.controlPlane in the manifest",
        "template": "a TenantCluster has no template",
    },
    "deployment": {
        "secret": "use --credential",
        "provider_config": "use --credential",
        "control_planes": "set spec.config.controlPlaneNumber in the manifest",
        "cni": "the template brings its own",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`secret`, `provider_config` and `credential` name objects that exist: manifests hold no passwords."""

    api: Api
    name: str
    namespace: str
    provider: str = "nutanix"
    version: str = ""  # of Kubernetes; of k0s for a deployment
    control_planes: int = 1
    workers: int = 2
    cpu: int = 2
    memory: str = "4Gi"
    disk: str = "40Gi"
    image: str = ""
    network: str = ""
    place: str = ""  # the vendor's cluster: a Prism Element
    endpoint: str = ""  # address of the API server
    cni: str = "cilium"
    pods: str = "192.168.0.0/16"
    services: str = "10.96.0.0/12"
    secret: str = ""
    address: str = ""  # of Prism Central
    provider_config: str = ""  # [NAMESPACE/]NAME
    credential: str = ""
    template: str = ""  # of a deployment

    def missing(self) -> list[str]:
        """Options that this API needs and that are not set."""
        return [f"--{name.replace('_', '-')}" for name in self.needed() if not getattr(self, name)]

    def unused(self, given: Iterable[str]) -> list[str]:
        """Options that were given and that this API would ignore, each as a sentence."""
        why = _UNUSED[self.api]
        return [
            f"--{name.replace('_', '-')} has no effect with --api {self.api}: {why[name]}"
            for name in given
            if name in why
        ]

    def needed(self) -> tuple[str, ...]:
        vendor = ("place",) if self.provider == "nutanix" and self.api != "tenant" else ()
        address = ("address",) if vendor else ()
        if self.api == "tenant":
            return ("provider_config",)
        if self.api == "deployment":
            return ("credential", *address, *vendor, "image", "network", "endpoint")
        return ("secret", *address, *vendor, "image", "network", "version", "endpoint")

    def part(self) -> dict[str, Any]:
        """The provider's part of a platform's object."""
        if self.provider == "harvester":
            return {"networkName": self.network, "imageName": self.image}
        host, _, port = self.address.partition(":")
        central: dict[str, Any] = {"address": host, **({"port": int(port)} if port.isdigit() else {})}
        return {
            "prismCentral": central,
            "cluster": {"name": self.place},
            "subnet": {"name": self.network},
            "image": {"name": self.image},
        }
