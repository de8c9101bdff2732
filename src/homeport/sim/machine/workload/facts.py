"""The configuration of a cluster, from its first control plane's user data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Version = tuple[int, int, int]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


def parse_version(text: str) -> Version:
    """`v1.30.2+k0s.0` > (1, 30, 2). Raises ValueError."""
    found = _VERSION.match(text.strip())
    if found is None:
        raise ValueError(f"version {text!r} is not like v1.30.2")
    return int(found.group(1)), int(found.group(2)), int(found.group(3) or 0)


@dataclass(slots=True)
class Facts:
    name: str
    version: str  # v1.30.2
    endpoint: tuple[str, int]
    flavour: str = "kubeadm"  # kubeadm, k0s or talos
    service_subnet: str = "10.96.0.0/12"
    pod_subnet: str = ""
    dns_domain: str = "cluster.local"
    image_repository: str = "registry.k8s.io"
    cert_sans: tuple[str, ...] = ()
    external_etcd: bool = False
    configuration: Json = field(default_factory=dict)  # ClusterConfiguration, defaults filled in
    kubelet: Json = field(default_factory=dict)
    proxy: Json = field(default_factory=dict)

    @property
    def server(self) -> str:
        host, port = self.endpoint
        return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
