"""Parts that both versions of a hosted k0s control plane share."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.field import Condition, Quantity
from homeport.api.k0s.part import ObjectMetaFields, SecretMeta
from homeport.api.meta import Model
from homeport.api.schema import Default, Description, Enum, Format, ListType, Needed, Preserve, Required, Shape

GROUP = "k0smotron.io"
CONTROL_PLANE_GROUP = "controlplane.cluster.x-k8s.io"

K0S_IMAGE = "quay.io/k0sproject/k0s"
ETCD_IMAGE = "quay.io/k0sproject/etcd:v3.7.1"
DEFRAG_IMAGE = "ghcr.io/ahrtr/etcd-defrag:v0.16.0"
DEFRAG_RULE = "dbQuotaUsage > 0.8 || dbSize - dbSizeInUse > 200*1024*1024"
DEFRAG_SCHEDULE = "0 12 * * *"
PROMETHEUS_IMAGE = "quay.io/k0sproject/prometheus:v2.44.0"
PROXY_IMAGE = "nginx:1.19.10"
API_PORT = 30443
KONNECTIVITY_PORT = 30132

SERVICE_DEFAULT = {"apiPort": API_PORT, "konnectivityPort": KONNECTIVITY_PORT, "type": "ClusterIP"}
CLUSTER_DEFAULT = {"service": {"type": "NodePort"}}
ETCD_DEFAULT = {"image": ETCD_IMAGE, "persistence": {}}

CERTIFICATE_TYPES = ("ca", "sa", "proxy", "etcd", "apiserver-etcd-client", "etcd-peer", "etcd-server")

Preserved = Annotated[dict[str, Any], Preserve()]
Conditions = list[Condition]
Number = Annotated[int, Format("")]

_CLAIM = Annotated[
    dict[str, Any],
    Shape(
        "ResourceClaim",
        (
            ("name", Annotated[str, Needed(), Description("Name of a claim of the Pod.")]),
            ("request", Annotated[str, Description("Request of the claim. Default: all of them.")]),
        ),
    ),
]
Resources = Annotated[
    dict[str, Any],
    Shape(
        "Resources",
        (
            (
                "claims",
                Annotated[
                    list[_CLAIM], ListType("map", ("name",)), Description("Claims of devices that the container uses.")
                ],
            ),
            (
                "limits",
                Annotated[dict[str, Quantity], Description("Upper limits, for example cpu: 1 and memory: 2Gi.")],
            ),
            (
                "requests",
                Annotated[dict[str, Quantity], Description("Reserved amounts, for example cpu: 500m and memory: 1Gi.")],
            ),
        ),
    ),
]
# A volume has dozens of kinds of sources: the API server checks them in the Pod that gets the volume.
Mount = Annotated[
    dict[str, Any],
    Shape(
        "Mount",
        (
            (
                "path",
                Annotated[str, Needed(), Description("Path in the container at which the volume is mounted.")],
            ),
            (
                "readOnly",
                Annotated[
                    bool,
                    Description(
                        "True mounts the volume read-only. ConfigMaps and Secrets are always read-only. Default: false."
                    ),
                ],
            ),
        ),
    ),
    Preserve(),
]
Manifest = Annotated[
    dict[str, Any],
    Shape("Manifest", (("name", Annotated[str, Needed(), Description("Name of the volume and of its folder.")]),)),
    Preserve(),
]


class EmbeddedMeta(ObjectMetaFields):
    pass


class CertificateRef(Model):
    name: str = ""
    type: Required[Annotated[str, Enum(CERTIFICATE_TYPES)]] = ""


class DefragJob(Model):
    enabled: Annotated[bool, Needed(), Default(False)] = False
    image: Annotated[str, Needed(), Default(DEFRAG_IMAGE)] = DEFRAG_IMAGE
    rule: Annotated[str, Needed(), Default(DEFRAG_RULE)] = DEFRAG_RULE
    schedule: Annotated[str, Needed(), Default(DEFRAG_SCHEDULE)] = DEFRAG_SCHEDULE


class StoragePersistence(Model):
    size: Annotated[Quantity, Default("1Gi")] = "1Gi"
    storage_class: str = ""


class EtcdSpec(Model):
    args: list[str] = []
    auto_delete_pvcs: Annotated[bool, Default(False)] = msgspec.field(default=False, name="autoDeletePVCs")
    defrag_job: DefragJob = msgspec.field(default_factory=DefragJob)
    image: Annotated[str, Needed(), Default(ETCD_IMAGE)] = ETCD_IMAGE
    persistence: StoragePersistence = msgspec.field(default_factory=StoragePersistence)
    resources: Resources = {}


class IngressSpec(Model):
    annotations: dict[str, str] = {}
    api_host: Required[str] = ""
    class_name: str | None = None
    deploy: bool | None = None
    konnectivity_host: Required[str] = ""
    port: Annotated[int, Format("int64"), Default(443)] = 443


class KubeconfigRef(Model):
    key: Annotated[str, Default("value")] = "value"
    name: Required[str] = ""
    namespace: Required[str] = ""


class MonitoringSpec(Model):
    enabled: Required[bool] = False
    prometheus_image: Annotated[str, Needed(), Default(PROMETHEUS_IMAGE)] = PROMETHEUS_IMAGE
    proxy_image: Annotated[str, Needed(), Default(PROXY_IMAGE)] = PROXY_IMAGE


class PersistentVolumeClaim(Model):
    api_version: str = ""
    kind: str = ""
    metadata: EmbeddedMeta = msgspec.field(default_factory=EmbeddedMeta)
    spec: Preserved = {}
    status: Preserved = {}


class PersistenceSpec(Model):
    auto_delete_pvcs: Annotated[bool, Default(False)] = msgspec.field(default=False, name="autoDeletePVCs")
    host_path: str = ""
    persistent_volume_claim: PersistentVolumeClaim | None = None
    type: Annotated[str, Needed(), Default("emptyDir")] = "emptyDir"


class ControlPlaneSpec(Model):
    """What v1beta1 and v1beta2 say in the same words."""

    certificate_refs: list[CertificateRef] = []
    external_address: str = ""
    image: Annotated[str, Default(K0S_IMAGE)] = K0S_IMAGE
    ingress: IngressSpec | None = None
    k0s_config: Preserved | None = None
    kubeconfig_secret_metadata: SecretMeta = msgspec.field(default_factory=SecretMeta)
    manifests: list[Manifest] = []
    monitoring: MonitoringSpec = msgspec.field(default_factory=MonitoringSpec)
    mounts: list[Mount] = []
    replicas: Annotated[int, Default(1)] = 1
    resources: Resources = {}
    service_account: str = ""
    topology_spread_constraints: list[Preserved] = []
    version: str = ""
