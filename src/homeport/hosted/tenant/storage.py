"""Where the data of one control plane is kept, as its Pods see it. No secrets in here: those stay in Secrets."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_KINE_SCHEMES = {"MySQL": "mysql", "PostgreSQL": "postgres", "NATS": "nats"}
KINE_SOCKET = "unix:///kine/kine.sock"
KINE_IMAGE = "rancher/kine:v0.11.10"
_SCHEMA_LETTERS = 63  # PostgreSQL has no longer names


@dataclass(frozen=True, slots=True)
class Override:
    """Objects of one resource that are kept in another etcd. `resource`: `/events`, `apps/deployments`."""

    resource: str
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """`schema` is the etcd prefix without slashes, or the database; `user` the etcd user."""

    datastore: str
    driver: str
    endpoints: tuple[str, ...]
    schema: str
    user: str
    overrides: tuple[Override, ...] = ()
    tls: bool = True

    @property
    def etcd(self) -> bool:
        return self.driver == "etcd"

    @property
    def kine_scheme(self) -> str:
        return _KINE_SCHEMES[self.driver]

    @property
    def servers(self) -> str:
        """--etcd-servers of kube-apiserver."""
        return ",".join(server_urls(self.endpoints)) if self.etcd else KINE_SOCKET


def server_urls(endpoints: tuple[str, ...]) -> list[str]:
    return [each if "://" in each else f"https://{each}" for each in endpoints]


def default_schema(namespace: str, name: str) -> str:
    """`default/demo`: `default_demo`. Names that are too long end with a digest, so that two never meet."""
    plain = re.sub(r"[^a-z0-9]", "_", f"{namespace}_{name}".lower())
    if len(plain) <= _SCHEMA_LETTERS and "_" not in namespace + name and "-" not in namespace + name:
        return plain
    # `a-b/c` and `a/b-c` would both be `a_b_c`.
    digest = hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:8]
    return f"{plain[: _SCHEMA_LETTERS - 9]}_{digest}"
