"""k0smotron.io v1beta2, and its kinds of controlplane.cluster.x-k8s.io."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.k0s.part import V1Beta2Status
from homeport.api.k0smotron.part import (
    API_PORT,
    CLUSTER_DEFAULT,
    CONTROL_PLANE_GROUP,
    ETCD_DEFAULT,
    GROUP,
    KONNECTIVITY_PORT,
    SERVICE_DEFAULT,
    Conditions,
    ControlPlaneSpec,
    EmbeddedMeta,
    EtcdSpec,
    IngressSpec,
    KubeconfigRef,
    Number,
    PersistenceSpec,
    StoragePersistence,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Enum, Needed, Required, Size

__all__ = [
    "Cluster",
    "ClusterSpec",
    "EtcdSpec",
    "IngressSpec",
    "JoinTokenRequest",
    "K0smotronControlPlane",
    "K0smotronControlPlaneTemplate",
    "PersistenceSpec",
    "RemoteHostCluster",
    "ServiceSpec",
    "StorageSpec",
]


class ServiceSpec(Model):
    api_port: Annotated[Number, Default(API_PORT)] = API_PORT
    konnectivity_port: Annotated[Number, Default(KONNECTIVITY_PORT)] = KONNECTIVITY_PORT
    type: Annotated[str, Needed(), Enum(("ClusterIP", "NodePort", "LoadBalancer")), Default("ClusterIP")] = "ClusterIP"


class KineSpec(Model):
    data_source_secret_name: str = ""
    data_source_url: str = ""


class NatsSpec(Model):
    persistence: StoragePersistence = msgspec.field(default_factory=StoragePersistence)


class StorageSpec(Model):
    etcd: Annotated[EtcdSpec, Default(ETCD_DEFAULT)] = msgspec.field(default_factory=EtcdSpec)
    kine: KineSpec = msgspec.field(default_factory=KineSpec)
    nats: NatsSpec = msgspec.field(default_factory=NatsSpec)
    type: Annotated[str, Enum(("etcd", "kine", "nats")), Default("etcd")] = "etcd"


class RemoteHostCluster(Model):
    kubeconfig_ref: KubeconfigRef | None = None


class PatchTarget(Model):
    component: Required[str] = ""
    kind: Required[str] = ""


class PatchSpec(Model):
    content: Required[str] = ""
    type: Required[Annotated[str, Enum(("json", "strategic", "merge"))]] = ""


class ComponentPatch(Model):
    patch: Required[PatchSpec] = msgspec.field(default_factory=PatchSpec)
    target: Required[PatchTarget] = msgspec.field(default_factory=PatchTarget)


class ClusterSpec(ControlPlaneSpec):
    control_plane_flags: list[str] = []
    patches: list[ComponentPatch] = []
    persistence: PersistenceSpec = msgspec.field(default_factory=PersistenceSpec)
    remote_host_cluster: RemoteHostCluster | None = None
    service: Annotated[ServiceSpec, Default(SERVICE_DEFAULT)] = msgspec.field(default_factory=ServiceSpec)
    storage: StorageSpec = msgspec.field(default_factory=StorageSpec)


class ClusterV1Beta1DeprecatedStatus(Model):
    ready: bool = False
    reconciliation_status: str = ""


class ClusterDeprecatedStatus(Model):
    v1beta1: ClusterV1Beta1DeprecatedStatus = msgspec.field(default_factory=ClusterV1Beta1DeprecatedStatus)


class ClusterStatus(Model):
    conditions: Conditions = []
    deprecated: ClusterDeprecatedStatus = msgspec.field(default_factory=ClusterDeprecatedStatus)
    ready_replicas: int = 0
    replicas: int = 0
    selector: str = ""
    updated_replicas: int = 0


@resource(GROUP, "v1beta2", "Cluster", "clusters")
class Cluster(Object):
    """A k0smotron Cluster is a k0s control plane that runs as Pods."""

    spec: Annotated[ClusterSpec, Default(CLUSTER_DEFAULT)] = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


class JoinTokenRequestSpec(Model):
    cluster_name: Required[Annotated[str, Size(1, 63)]] = ""
    expiry: Annotated[str, Default("0s")] = "0s"
    role: Annotated[str, Enum(("worker", "controller")), Default("worker")] = "worker"


class JoinTokenRequestV1Beta1DeprecatedStatus(Model):
    cluster_uid: str = ""
    reconciliation_status: str = ""


class JoinTokenRequestDeprecatedStatus(Model):
    v1beta1: JoinTokenRequestV1Beta1DeprecatedStatus = msgspec.field(
        default_factory=JoinTokenRequestV1Beta1DeprecatedStatus
    )


class JoinTokenRequestStatus(Model):
    conditions: Conditions = []
    deprecated: JoinTokenRequestDeprecatedStatus = msgspec.field(default_factory=JoinTokenRequestDeprecatedStatus)
    token_id: str = ""


@resource(GROUP, "v1beta2", "JoinTokenRequest", "jointokenrequests")
class JoinTokenRequest(Object):
    """A JoinTokenRequest makes a token with which a machine joins a k0smotron Cluster."""

    spec: JoinTokenRequestSpec = msgspec.field(default_factory=JoinTokenRequestSpec)
    status: JoinTokenRequestStatus = msgspec.field(default_factory=JoinTokenRequestStatus)


class K0smotronControlPlaneStatus(V1Beta2Status):
    """Observed state of the control plane."""


_NEW_STATUS = {
    "conditions": [
        {
            "type": "Available",
            "status": "Unknown",
            "reason": "ControlPlaneDoesNotExist",
            "message": "The control plane does not exist yet",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ],
    "initialization": {"controlPlaneInitialized": False},
    "version": "",
}


@resource(CONTROL_PLANE_GROUP, "v1beta2", "K0smotronControlPlane", "k0smotroncontrolplanes")
class K0smotronControlPlane(Object):
    """A K0smotronControlPlane is the control plane of a Cluster: k0s, running as Pods."""

    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)
    status: Annotated[K0smotronControlPlaneStatus, Default(_NEW_STATUS)] = msgspec.field(
        default_factory=K0smotronControlPlaneStatus
    )


class K0smotronControlPlaneTemplateResource(Model):
    metadata: EmbeddedMeta = msgspec.field(default_factory=EmbeddedMeta)
    spec: ClusterSpec = msgspec.field(default_factory=ClusterSpec)


class K0smotronControlPlaneTemplateSpec(Model):
    template: K0smotronControlPlaneTemplateResource = msgspec.field(
        default_factory=K0smotronControlPlaneTemplateResource
    )


@resource(CONTROL_PLANE_GROUP, "v1beta2", "K0smotronControlPlaneTemplate", "k0smotroncontrolplanetemplates")
class K0smotronControlPlaneTemplate(Object):
    """A K0smotronControlPlaneTemplate is the template of control planes for a ClusterClass."""

    spec: K0smotronControlPlaneTemplateSpec = msgspec.field(default_factory=K0smotronControlPlaneTemplateSpec)
