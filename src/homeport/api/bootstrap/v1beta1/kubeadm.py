"""Settings of kubeadm: cluster, init and join configuration."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta2.kubeadm import EnvVar, KubeConfigAuthExecEnv, KubeConfigAuthProvider
from homeport.api.core.v1 import Taint
from homeport.api.field import Time
from homeport.api.meta import Model
from homeport.api.schema import Enum, Format, Range, Required, Size


class HostPathMount(Model):
    """A path of the host that is mounted into a component."""

    host_path: Required[Annotated[str, Size(1, 512)]] = ""
    mount_path: Required[Annotated[str, Size(1, 512)]] = ""
    name: Required[Annotated[str, Size(1, 512)]] = ""
    path_type: str = ""
    read_only: bool = False


class APIServer(Model):
    """Settings of kube-apiserver."""

    cert_sans: Annotated[list[Annotated[str, Size(1, 253)]], Size(None, 100)] = msgspec.field(
        default_factory=list, name="certSANs"
    )
    extra_args: dict[str, str] = {}
    extra_envs: Annotated[list[EnvVar], Size(None, 100)] = []
    extra_volumes: Annotated[list[HostPathMount], Size(None, 100)] = []
    timeout_for_control_plane: str | None = None


class ControlPlaneComponent(Model):
    """Settings of a control-plane component."""

    extra_args: dict[str, str] = {}
    extra_envs: Annotated[list[EnvVar], Size(None, 100)] = []
    extra_volumes: Annotated[list[HostPathMount], Size(None, 100)] = []


class DNS(Model):
    """The image of the cluster's DNS server."""

    image_repository: Annotated[str, Size(1, 512)] = ""
    image_tag: Annotated[str, Size(1, 256)] = ""


class ExternalEtcd(Model):
    """An etcd that is run elsewhere."""

    ca_file: Required[Annotated[str, Size(1, 512)]] = ""
    cert_file: Required[Annotated[str, Size(1, 512)]] = ""
    endpoints: Required[Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 50)]] = []
    key_file: Required[Annotated[str, Size(1, 512)]] = ""


class LocalEtcd(Model):
    """etcd on the control-plane hosts."""

    data_dir: Annotated[str, Size(1, 512)] = ""
    extra_args: dict[str, str] = {}
    extra_envs: Annotated[list[EnvVar], Size(None, 100)] = []
    image_repository: Annotated[str, Size(1, 512)] = ""
    image_tag: Annotated[str, Size(1, 256)] = ""
    peer_cert_sans: Annotated[list[Annotated[str, Size(1, 253)]], Size(None, 100)] = msgspec.field(
        default_factory=list, name="peerCertSANs"
    )
    server_cert_sans: Annotated[list[Annotated[str, Size(1, 253)]], Size(None, 100)] = msgspec.field(
        default_factory=list, name="serverCertSANs"
    )


class Etcd(Model):
    """etcd: on the control-plane hosts, or an external one."""

    external: ExternalEtcd | None = None
    local: LocalEtcd | None = None


class Networking(Model):
    """Addresses of Pods and Services for kubeadm."""

    dns_domain: Annotated[str, Size(1, 253)] = ""
    pod_subnet: Annotated[str, Size(1, 1024)] = ""
    service_subnet: Annotated[str, Size(1, 1024)] = ""


class ClusterConfiguration(Model):
    """Settings of kubeadm for the cluster as a whole."""

    api_server: APIServer = msgspec.field(default_factory=APIServer)
    api_version: str = ""
    ca_certificate_validity_period_days: Annotated[int, Range(1, 36500)] = 0
    certificate_validity_period_days: Annotated[int, Range(1, 1095)] = 0
    certificates_dir: Annotated[str, Size(1, 512)] = ""
    cluster_name: Annotated[str, Size(1, 63)] = ""
    control_plane_endpoint: Annotated[str, Size(1, 512)] = ""
    controller_manager: ControlPlaneComponent = msgspec.field(default_factory=ControlPlaneComponent)
    dns: DNS = msgspec.field(default_factory=DNS)
    encryption_algorithm: Annotated[str, Enum(("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"))] = ""
    etcd: Etcd = msgspec.field(default_factory=Etcd)
    feature_gates: dict[str, bool] = {}
    image_repository: Annotated[str, Size(1, 512)] = ""
    kind: str = ""
    kubernetes_version: Annotated[str, Size(1, 256)] = ""
    networking: Networking = msgspec.field(default_factory=Networking)
    scheduler: ControlPlaneComponent = msgspec.field(default_factory=ControlPlaneComponent)


class BootstrapToken(Model):
    """A token that joining nodes prove themselves with."""

    description: Annotated[str, Size(1, 512)] = ""
    expires: Time | None = None
    groups: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []
    token: Required[str | None] = None
    ttl: str | None = None
    usages: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 100)] = []


class APIEndpoint(Model):
    """Address and port of an API server."""

    advertise_address: Annotated[str, Size(1, 39)] = ""
    bind_port: int = 0


class NodeRegistrationOptions(Model):
    """How the kubelet registers its Node."""

    cri_socket: Annotated[str, Size(1, 512)] = ""
    ignore_preflight_errors: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 50)] = []
    image_pull_policy: Annotated[str, Enum(("Always", "IfNotPresent", "Never"))] = ""
    image_pull_serial: bool | None = None
    kubelet_extra_args: dict[str, str] = {}
    name: Annotated[str, Size(1, 253)] = ""
    taints: Annotated[list[Taint], Size(None, 100)] = []


class Patches(Model):
    """Where kubeadm finds patches of static Pod manifests."""

    directory: Annotated[str, Size(1, 512)] = ""


class InitConfiguration(Model):
    """Settings of `kubeadm init`."""

    api_version: str = ""
    bootstrap_tokens: Annotated[list[BootstrapToken], Size(None, 100)] = []
    kind: str = ""
    local_api_endpoint: APIEndpoint = msgspec.field(default_factory=APIEndpoint)
    node_registration: NodeRegistrationOptions = msgspec.field(default_factory=NodeRegistrationOptions)
    patches: Patches | None = None
    skip_phases: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 50)] = []


class JoinControlPlane(Model):
    """Settings of a joining control plane node. If they are set, the node joins the control plane."""

    local_api_endpoint: APIEndpoint = msgspec.field(default_factory=APIEndpoint)


class BootstrapTokenDiscovery(Model):
    """Discovery of the cluster by a bootstrap token."""

    api_server_endpoint: Annotated[str, Size(1, 512)] = ""
    ca_cert_hashes: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 100)] = []
    token: Annotated[str, Size(1, 512)] = ""
    unsafe_skip_ca_verification: bool = False


class KubeConfigCluster(Model):
    """The API server in a kubeconfig."""

    certificate_authority_data: Annotated[str, Size(1, 51200), Format("byte")] = ""
    insecure_skip_tls_verify: bool = msgspec.field(default=False, name="insecureSkipTLSVerify")
    proxy_url: Annotated[str, Size(1, 512)] = ""
    server: Annotated[str, Size(1, 512)] = ""
    tls_server_name: Annotated[str, Size(1, 512)] = ""


class KubeConfigAuthExec(Model):
    """A program that gives credentials."""

    api_version: Annotated[str, Size(1, 512)] = ""
    args: Annotated[list[Annotated[str, Size(1, 512)]], Size(None, 100)] = []
    command: Required[Annotated[str, Size(1, 1024)]] = ""
    env: Annotated[list[KubeConfigAuthExecEnv], Size(None, 100)] = []
    provide_cluster_info: bool = False


class KubeConfigUser(Model):
    """Credentials in a kubeconfig."""

    auth_provider: KubeConfigAuthProvider | None = None
    exec: KubeConfigAuthExec | None = None


class FileDiscoveryKubeConfig(Model):
    """The kubeconfig that a joining node is given."""

    cluster: KubeConfigCluster | None = None
    user: Required[KubeConfigUser] = msgspec.field(default_factory=KubeConfigUser)


class FileDiscovery(Model):
    """Discovery of the cluster by a kubeconfig."""

    kube_config: FileDiscoveryKubeConfig | None = None
    kube_config_path: Required[Annotated[str, Size(1, 512)]] = ""


class Discovery(Model):
    """How a joining node finds the cluster and learns to trust it."""

    bootstrap_token: BootstrapTokenDiscovery | None = None
    file: FileDiscovery | None = None
    timeout: str | None = None
    tls_bootstrap_token: Annotated[str, Size(1, 512)] = ""


class JoinConfiguration(Model):
    """Settings of `kubeadm join`."""

    api_version: str = ""
    ca_cert_path: Annotated[str, Size(1, 512)] = ""
    control_plane: JoinControlPlane | None = None
    discovery: Discovery = msgspec.field(default_factory=Discovery)
    kind: str = ""
    node_registration: NodeRegistrationOptions = msgspec.field(default_factory=NodeRegistrationOptions)
    patches: Patches | None = None
    skip_phases: Annotated[list[Annotated[str, Size(1, 256)]], Size(None, 50)] = []
