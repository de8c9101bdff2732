"""Names, labels and annotations of what belongs to a k0smotron Cluster, as k0smotron gives them. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

FINALIZER = "k0smotron.io/finalizer"
CONTROL_PLANE_FINALIZER = "k0smotron.controlplane.cluster.x-k8s.io"
JOIN_TOKEN_FINALIZER = "jointokenrequests.k0smotron.io/finalizer"  # noqa: S105

SPEC_HASH_ANNOTATION = "k0smotron.io/cluster-spec-hash"
CLUSTER_NAMESPACE_ANNOTATION = "k0smotron.io/cluster-ref-namespace"
DROPPED_SERVICE_PREFIX = "k0smotron.io/conversion-dropped-service."
ENDPOINT_ANNOTATION = "k0smotron.homeport.dev/endpoint"  # on Clusters: where their API server is reached
CLUSTER_ID_ANNOTATION = "k0sproject.io/cluster-id"
MANAGED_BY_K0SMOTRON = "k0smotron"

CLUSTER_LABEL = "k0smotron.io/cluster"
CLUSTER_UID_LABEL = "k0smotron.io/cluster-uid"
ROLE_LABEL = "k0smotron.io/role"
TOKEN_REQUEST_LABEL = "k0smotron.io/token-request"  # noqa: S105
COMPONENT_LABEL = "app.kubernetes.io/component"

_LIMIT = 63
# Pods of a StatefulSet carry its name in labels, with a number or the hash of a revision after it.
_STATEFUL_SET_LIMIT = 52
_DIGITS = 5
_KEPT = _LIMIT - _DIGITS - 1


def shortened(name: str, limit: int = _LIMIT) -> str:
    """A name of at most 63 characters: of longer ones the first 57, and five of the digest."""
    if len(name) <= limit:
        return name
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[: limit - _DIGITS - 1]}-{digest[:_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Names:
    """Of the objects of one k0smotron Cluster."""

    cluster: str

    def _of(self, suffix: str = "", prefix: str = "kmc-") -> str:
        return shortened(f"{prefix}{self.cluster}{suffix}")

    @property
    def statefulset(self) -> str:
        return shortened(f"kmc-{self.cluster}", _STATEFUL_SET_LIMIT)

    @property
    def volume(self) -> str:
        return self._of()

    ingress = volume

    @property
    def config(self) -> str:
        return self._of("-config")

    @property
    def entrypoint(self) -> str:
        return self._of("-config", "kmc-entrypoint-")

    @property
    def telemetry(self) -> str:
        return self._of("-telemetry-config")

    @property
    def endpoint(self) -> str:
        return self._of("-endpoint")

    @property
    def monitoring(self) -> str:
        return self._of("-config", "kmc-prometheus-")

    @property
    def ingress_manifests(self) -> str:
        return self._of("-ingress")

    @property
    def etcd(self) -> str:
        """Of the StatefulSet and of its Service."""
        return shortened(f"kmc-{self.cluster}-etcd", _STATEFUL_SET_LIMIT)

    @property
    def defrag(self) -> str:
        return self._of("-defrag")

    @property
    def nats(self) -> str:
        return self._of("-nats")

    @property
    def nats_token(self) -> str:
        return self._of("-nats-token")

    @property
    def root_owner(self) -> str:
        return f"{self.cluster}-root-owner"

    def service(self, type_: str) -> str:
        return self._of({"NodePort": "-nodeport", "LoadBalancer": "-lb"}.get(type_, ""))


# -- labels --------------------------------------------------------------------------------------------------------


def base_labels(cluster: str) -> dict[str, str]:
    """By these two everything of a cluster is found."""
    return {"app": "k0smotron", "cluster": _value(cluster)}


def _value(name: str) -> str:
    """A label's value has the limit that names of objects here have."""
    return shortened(name)


def cluster_labels(cluster: str, own: Mapping[str, str]) -> dict[str, str]:
    """`own`: labels of the Cluster and of its kubeconfig, which everything of it gets."""
    return {**base_labels(cluster), **own, "component": "cluster"}


def component_labels(cluster: str, own: Mapping[str, str], component: str) -> dict[str, str]:
    return {**cluster_labels(cluster, own), COMPONENT_LABEL: component}


_INVALID = re.compile(r"[^a-z0-9-]+")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def volume_name(path: str) -> str:
    """Of a volume that is mounted at `path`: the path itself where it can be a name, else with a digest."""
    simple = path.removeprefix("/").replace("/", "-")
    if _LABEL.fullmatch(simple):
        return simple
    digest = hashlib.sha256(path.encode()).hexdigest()[:5]
    readable = _INVALID.sub("-", path.removeprefix("/").lower()).strip("-")[:_KEPT].rstrip("-")
    return f"{readable}-{digest}" if readable else digest
