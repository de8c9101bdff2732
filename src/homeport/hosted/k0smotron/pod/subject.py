"""One k0smotron Cluster as its renderers see it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.api.k0smotron.v1beta2 import Cluster, ClusterSpec
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.version import K0sVersion
from homeport.capi.remote.pki import secret_name
from homeport.hosted.k0smotron.conversion import dropped_service_field
from homeport.hosted.k0smotron.name import Names, base_labels, component_labels

Json = dict[str, Any]

DEFAULT_VERSION = "v1.27.9-k0s.0"
DATA_DIR = "/var/lib/k0s"
PKI_DIR = f"{DATA_DIR}/pki"
SERVICE_CIDR = "10.96.0.0/12"  # what k0s uses if nothing is said
CLUSTER_DOMAIN = "cluster.local"
GENERATED = ("ca", "sa", "proxy", "etcd")


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    namespace: str
    spec: ClusterSpec
    owner: Mapping[str, Any]  # reference that all objects get, so that they go with it
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, owner: Mapping[str, Any]) -> Subject:
        meta = cluster.metadata
        return cls(meta.name, meta.namespace, cluster.spec, owner, meta.labels, meta.annotations)

    @property
    def names(self) -> Names:
        return Names(self.name)

    @property
    def version(self) -> K0sVersion:
        return k0sversion.parse(self.spec.version or DEFAULT_VERSION)

    @property
    def image(self) -> str:
        return f"{self.spec.image}:{self.version.tag}"

    @property
    def storage(self) -> str:
        return self.spec.storage.type

    @property
    def service_name(self) -> str:
        return self.names.service(self.spec.service.type)

    # -- labels ------------------------------------------------------------------------------------------------

    @property
    def own_labels(self) -> dict[str, str]:
        return {**self.labels, **self.spec.kubeconfig_secret_metadata.labels}

    @property
    def pod_selector(self) -> dict[str, str]:
        """Selectors can't be changed later: labels of users, which can, are no part of them."""
        return {**base_labels(self.name), "component": "cluster", "cluster.x-k8s.io/control-plane": "true"}

    @property
    def etcd_selector(self) -> dict[str, str]:
        return {**base_labels(self.name), "component": "etcd"}

    def metadata(self, name: str, component: str, selector: Mapping[str, str] | None = None) -> Json:
        made: Json = {
            "name": name,
            "namespace": self.namespace,
            "labels": {**component_labels(self.name, self.own_labels, component), **(selector or {})},
            "ownerReferences": [dict(self.owner)],
        }
        if self.spec.kubeconfig_secret_metadata.annotations:
            made["annotations"] = dict(self.spec.kubeconfig_secret_metadata.annotations)
        return made

    def service_setting(self, field: str) -> Any:
        """Of the Service, as only v1beta1 can say it."""
        return dropped_service_field(dict(self.annotations), field)

    # -- certificates ------------------------------------------------------------------------------------------

    def certificate(self, purpose: str) -> str:
        """The Secret of a certificate: the one that the user named, or the one that is generated."""
        for each in self.spec.certificate_refs:
            if each.type == purpose:
                return each.name or secret_name(self.name, purpose)
        return secret_name(self.name, purpose)

    # -- what k0sConfig says -----------------------------------------------------------------------------------

    @property
    def service_cidr(self) -> str:
        return str(self.network.get("serviceCIDR") or SERVICE_CIDR)

    @property
    def cluster_domain(self) -> str:
        return str(self.network.get("clusterDomain") or CLUSTER_DOMAIN)

    @property
    def network(self) -> Json:
        return part(self.spec.k0s_config or {}, "spec", "network")


def part(obj: Mapping[str, Any], *path: str) -> Json:
    """The object at a path; {} where there is none."""
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def config_map(subject: Subject, name: str, component: str, data: Mapping[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": subject.metadata(name, component),
        "data": dict(data),
    }
