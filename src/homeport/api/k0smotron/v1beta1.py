"""k0smotron.io v1beta1, and its kinds of controlplane.cluster.x-k8s.io: deprecated, converted to v1beta2."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.k0s.part import V1Beta1Status
from homeport.api.k0smotron.part import (
    API_PORT,
    CLUSTER_DEFAULT,
    CONTROL_PLANE_GROUP,
    ETCD_DEFAULT,
    GROUP,
    KONNECTIVITY_PORT,
    SERVICE_DEFAULT,
    ControlPlaneSpec,
    EmbeddedMeta,
    EtcdSpec,
    KubeconfigRef,
    Number,
    PersistenceSpec,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Enum, Needed, Required


class ServiceSpec(Model):
    annotations: dict[str, str] = {}
    api_port: Annotated[Number, Default(API_PORT)] = API_PORT
    external_traffic_policy: Annotated[str, Enum(("Cluster", "Local"))] = ""
    konnectivity_port: Annotated[Number, Default(KONNECTIVITY_PORT)] = KONNECTIVITY_PORT
    labels: dict[str, str] = {}
    load_balancer_class: str | None = None
    type: Annotated[str, Needed(), Enum(("ClusterIP", "NodePort", "LoadBalancer")), Default("ClusterIP")] = "ClusterIP"


class ClusterSpec(ControlPlaneSpec):
    controller_plane_flags: list[str] = []
    etcd: Annotated[EtcdSpec, Default(ETCD_DEFAULT)] = msgspec.field(default_factory=EtcdSpec)
    kine_data_source_secret_name: str = ""
    kine_data_source_url: str = ""
    kubeconfig_ref: KubeconfigRef | None = None
    persistence: Annotated[PersistenceSpec, Default({"type": "emptyDir"})] = msgspec.field(
        default_factory=PersistenceSpec
    )
    service: Annotated[ServiceSpec, Default(SERVICE_DEFAULT)] = msgspec.field(default_factory=ServiceSpec)


class ClusterStatus(Model):
    ready: bool = False
    reconciliation_status: Required[str] = ""
    replicas: int = 0
    selector: str = ""


@resource(GROUP, "v1beta1", "Cluster", "clusters")
class Cluster(Object):
    """A k0smotron Cluster is a k0s control plane that runs as Pods."""

    spec: Annotated[ClusterSpec, Default(CLUSTER_DEFAULT)] = msgspec.field(default_factory=ClusterSpec)
    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


class ClusterRef(Model):
    name: Required[str] = ""
    namespace: Required[str] = ""


class JoinTokenRequestSpec(Model):
    cluster_ref: Required[ClusterRef] = msgspec.field(default_factory=ClusterRef)
    expiry: Annotated[str, Default("0s")] = "0s"
    role: Annotated[str, Enum(("worker", "controller")), Default("worker")] = "worker"


class JoinTokenRequestStatus(Model):
    cluster_uid: str = ""
    reconciliation_status: Required[str] = ""
    token_id: str = ""


@resource(GROUP, "v1beta1", "JoinTokenRequest", "jointokenrequests")
class JoinTokenRequest(Object):
    """A JoinTokenRequest makes a token with which a machine joins a k0smotron Cluster."""

    spec: JoinTokenRequestSpec = msgspec.field(default_factory=JoinTokenRequestSpec)
    status: JoinTokenRequestStatus = msgspec.field(default_factory=JoinTokenRequestStatus)


class K0smotronControlPlaneStatus(V1Beta1Status):
    """Observed state of the control plane."""


_NEW_STATUS = {
    "conditions": [
        {
            "type": "ControlPlaneReady",
            "status": "Unknown",
            "reason": "ControlPlaneDoesNotExist",
            "message": "The control plane does not exist yet",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ],
    "initialization": {"controlPlaneInitialized": False},
    "initialized": False,
    "ready": False,
    "version": "",
}


@resource(CONTROL_PLANE_GROUP, "v1beta1", "K0smotronControlPlane", "k0smotroncontrolplanes")
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


@resource(CONTROL_PLANE_GROUP, "v1beta1", "K0smotronControlPlaneTemplate", "k0smotroncontrolplanetemplates")
class K0smotronControlPlaneTemplate(Object):
    """A K0smotronControlPlaneTemplate is the template of control planes for a ClusterClass."""

    spec: K0smotronControlPlaneTemplateSpec = msgspec.field(default_factory=K0smotronControlPlaneTemplateSpec)
