"""k0smotron.io v1beta1, and its kinds of controlplane.cluster.x-k8s.io: deprecated, converted to v1beta2."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.k0s.part import V1Beta1Status
from homeport.api.k0smotron import v1beta2
from homeport.api.k0smotron.part import (
    API_PORT,
    ETCD_DEFAULT,
    KONNECTIVITY_PORT,
    SERVICE_DEFAULT,
    ControlPlaneSpec,
    EtcdSpec,
    KubeconfigRef,
    Number,
    PersistenceSpec,
)
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, Needed, Required
from homeport.api.version import older


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
_REPLACED = {
    v1beta2.ClusterSpec: ClusterSpec,
    v1beta2.ClusterStatus: ClusterStatus,
    v1beta2.JoinTokenRequestSpec: JoinTokenRequestSpec,
    v1beta2.JoinTokenRequestStatus: JoinTokenRequestStatus,
    v1beta2.K0smotronControlPlaneStatus: Annotated[K0smotronControlPlaneStatus, Default(_NEW_STATUS)],
}

Cluster = older(v1beta2.Cluster, "v1beta1", _REPLACED)
JoinTokenRequest = older(v1beta2.JoinTokenRequest, "v1beta1", _REPLACED)
K0smotronControlPlane = older(v1beta2.K0smotronControlPlane, "v1beta1", _REPLACED)
K0smotronControlPlaneTemplate = older(v1beta2.K0smotronControlPlaneTemplate, "v1beta1", _REPLACED)
