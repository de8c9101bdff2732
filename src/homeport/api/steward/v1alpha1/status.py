"""What a TenantControlPlane is."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, Long, Time
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, Needed
from homeport.api.steward.part import (
    Part,
    Preserved,
)


class SecretState(Model):
    """A Secret that the controller keeps, and when it was written last."""

    checksum: str = ""
    last_update: Time | None = None
    secret_name: str = ""


class ConfigState(Model):
    checksum: str = ""
    secret_name: str = ""


class ObjectState(Model):
    last_update: Time | None = None
    name: str = ""
    namespace: str = ""


class ServiceState(Model):
    conditions: list[Part] = []
    load_balancer: Preserved = {}
    name: Annotated[str, Needed()] = ""
    namespace: Annotated[str, Needed()] = ""
    port: Annotated[int, Needed()] = 0


class AddonState(Model):
    enabled: Annotated[bool, Needed()] = False
    last_update: Time | None = None


class AgentState(Model):
    last_update: Time | None = None
    mode: str = ""
    name: str = ""
    namespace: str = ""


class ConfigMapState(Model):
    checksum: str = ""
    name: str = ""


class KonnectivityState(Model):
    agent: AgentState | None = None
    certificate: SecretState | None = None
    clusterrolebinding: ObjectState | None = None
    config_map: ConfigMapState | None = None
    enabled: Annotated[bool, Needed()] = False
    gateway: Preserved | None = None
    kubeconfig: SecretState | None = None
    sa: ObjectState | None = None
    service: ServiceState | None = None


class TCPProxyState(Model):
    cluster_role: ObjectState | None = None
    cluster_role_binding: ObjectState | None = None
    deployment: ObjectState | None = None
    enabled: Annotated[bool, Needed()] = False
    service: ObjectState | None = None
    service_account: ObjectState | None = None


class WorkerBootstrapState(Model):
    credentials: SecretState | None = None
    enabled: Annotated[bool, Needed()] = False
    endpoint: str = ""
    provider: Annotated[str, Enum(("talos",))] | None = None
    service: ServiceState | None = None


class AddonsState(Model):
    core_dns: AddonState | None = None
    konnectivity: KonnectivityState | None = None
    kube_proxy: AddonState | None = None
    tcp_proxy: TCPProxyState | None = None
    worker_bootstrap: WorkerBootstrapState | None = None


class EtcdCertificates(Model):
    api_server: SecretState | None = None
    ca: SecretState | None = None


class CertificatesState(Model):
    api_server: SecretState | None = None
    api_server_kubelet_client: SecretState | None = None
    ca: SecretState | None = None
    etcd: EtcdCertificates | None = None
    front_proxy_ca: SecretState | None = None
    front_proxy_client: SecretState | None = None
    sa: SecretState | None = None


class PhaseState(Model):
    checksum: str = ""
    last_update: Time | None = None


class KubeadmPhases(Model):
    bootstrap_token: Annotated[PhaseState, Needed()] = msgspec.field(default_factory=PhaseState)


class KubeadmConfigState(Model):
    checksum: str = ""
    configmap_name: str = ""
    last_update: Time | None = None


class KubeconfigsState(Model):
    admin: SecretState | None = None
    controller_manager: SecretState | None = None
    scheduler: SecretState | None = None


class DeploymentState(Model):
    """The Deployment: its own status, with its name and the selector of its Pods."""

    available_replicas: int | None = None
    collision_count: int | None = None
    conditions: list[Part] = []
    last_update: Time | None = None
    name: Annotated[str, Needed()] = ""
    namespace: Annotated[str, Needed()] = ""
    observed_generation: Long | None = None
    ready_replicas: int | None = None
    replicas: int | None = None
    selector: Annotated[str, Needed()] = ""
    terminating_replicas: int | None = None
    unavailable_replicas: int | None = None
    updated_replicas: int | None = None


class IngressState(Model):
    load_balancer: Preserved = {}
    name: Annotated[str, Needed()] = ""
    namespace: Annotated[str, Needed()] = ""


STATES = (
    "Unknown",
    "Provisioning",
    "CertificateAuthorityRotating",
    "Upgrading",
    "Migrating",
    "Ready",
    "NotReady",
    "Sleeping",
    "WriteLimited",
)


class VersionState(Model):
    # No default here: what equals it would not be written, and columns would be empty.
    status: Annotated[str, Enum(STATES), Default("Provisioning")] = ""
    version: str = ""


class ResourcesState(Model):
    deployment: DeploymentState | None = None
    gateway: Preserved | None = None
    ingress: IngressState | None = None
    service: ServiceState | None = None
    version: VersionState = msgspec.field(default_factory=VersionState)


class SetupState(Model):
    checksum: str = ""
    last_update: Time | None = None
    schema: str = ""
    user: str = ""


class StorageState(Model):
    certificate: SecretState | None = None
    config: ConfigState | None = None
    data_store_name: str = ""
    driver: str = ""
    setup: SetupState | None = None


class TenantControlPlaneStatus(Model):
    """Upstream has no conditions here. `Ready` says what the control plane waits for."""

    addons: AddonsState = msgspec.field(default_factory=AddonsState)
    certificates: CertificatesState = msgspec.field(default_factory=CertificatesState)
    conditions: Conditions = []
    control_plane_endpoint: str = ""
    kubeadm_phase: KubeadmPhases | None = None
    kubeadmconfig: KubeadmConfigState | None = None
    kubeconfig: KubeconfigsState = msgspec.field(default_factory=KubeconfigsState)
    kubernetes_resources: ResourcesState = msgspec.field(default_factory=ResourcesState)
    storage: StorageState = msgspec.field(default_factory=StorageState)
