"""Settings of kubeadm: cluster, init and join configuration."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.core.v1 import EnvVarSource, Taint
from homeport.api.field import Count, NonEmpty, Time
from homeport.api.meta import Model
from homeport.api.schema import Enum, Format, ListType, Range, Required, Rule, Size


class Arg(Model):
    """One argument of a component, without its dashes. The same name may not be given twice."""

    name: Required[Annotated[str, Size(1, 256)]] = ""
    value: Required[Annotated[str, Size(0, 1024)] | None] = None


class EnvVar(Model):
    """An environment variable."""

    name: Required[str] = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class HostPathMount(Model):
    """A path of the host that is mounted into a component."""

    host_path: Required[Annotated[str, Size(1, 512)]] = ""
    mount_path: Required[Annotated[str, Size(1, 512)]] = ""
    name: Required[Annotated[str, Size(1, 512)]] = ""
    path_type: str = ""
    read_only: bool | None = None


Args = Annotated[
    list[Arg],
    Size(1, 100),
    ListType("map", ("name", "value")),
    Rule("self.all(x, self.exists_one(y, x.name == y.name))", "each name may be there once only"),
]


class ComponentSettings(NonEmpty):
    """Settings that kubeadm takes for each component of the control plane."""

    extra_args: Args = []
    extra_envs: Annotated[list[EnvVar], Size(1, 100), ListType("atomic")] = []
    extra_volumes: Annotated[list[HostPathMount], Size(1, 100), ListType("atomic")] = []


class APIServer(ComponentSettings):
    """Settings of kube-apiserver."""

    cert_sans: Annotated[list[Annotated[str, Size(1, 253)]], Size(1, 100), ListType("atomic")] = msgspec.field(
        default_factory=list, name="certSANs"
    )


class ControllerManager(ComponentSettings):
    """Settings of kube-controller-manager."""


class DNS(NonEmpty):
    """The image of the cluster's DNS server."""

    image_repository: Annotated[str, Size(1, 512)] = ""
    image_tag: Annotated[str, Size(1, 256)] = ""


class ExternalEtcd(Model):
    """An etcd that is run elsewhere."""

    ca_file: Required[Annotated[str, Size(1, 512)]] = ""
    cert_file: Required[Annotated[str, Size(1, 512)]] = ""
    endpoints: Required[Annotated[list[Annotated[str, Size(1, 512)]], Size(1, 50), ListType("atomic")]] = []
    key_file: Required[Annotated[str, Size(1, 512)]] = ""


class LocalEtcd(NonEmpty):
    """etcd on the control-plane hosts."""

    data_dir: Annotated[str, Size(1, 512)] = ""
    extra_args: Args = []
    extra_envs: Annotated[list[EnvVar], Size(1, 100), ListType("atomic")] = []
    image_repository: Annotated[str, Size(1, 512)] = ""
    image_tag: Annotated[str, Size(1, 256)] = ""
    peer_cert_sans: Annotated[list[Annotated[str, Size(1, 253)]], Size(1, 100), ListType("atomic")] = msgspec.field(
        default_factory=list, name="peerCertSANs"
    )
    server_cert_sans: Annotated[list[Annotated[str, Size(1, 253)]], Size(1, 100), ListType("atomic")] = msgspec.field(
        default_factory=list, name="serverCertSANs"
    )


class Etcd(NonEmpty):
    """etcd: on the control-plane hosts, or an external one."""

    external: ExternalEtcd = msgspec.field(default_factory=ExternalEtcd)
    local: LocalEtcd = msgspec.field(default_factory=LocalEtcd)


class Scheduler(ComponentSettings):
    """Settings of kube-scheduler."""


class ClusterConfiguration(NonEmpty):
    """Settings of kubeadm for the cluster as a whole."""

    api_server: APIServer = msgspec.field(default_factory=APIServer)
    ca_certificate_validity_period_days: Annotated[int, Range(1, 36500)] = 0
    certificate_validity_period_days: Annotated[int, Range(1, 1095)] = 0
    certificates_dir: Annotated[str, Size(1, 512)] = ""
    control_plane_endpoint: Annotated[str, Size(1, 512)] = ""
    controller_manager: ControllerManager = msgspec.field(default_factory=ControllerManager)
    dns: DNS = msgspec.field(default_factory=DNS)
    encryption_algorithm: Annotated[str, Enum(("ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"))] = ""
    etcd: Etcd = msgspec.field(default_factory=Etcd)
    feature_gates: dict[str, bool] = {}
    image_repository: Annotated[str, Size(1, 512)] = ""
    scheduler: Scheduler = msgspec.field(default_factory=Scheduler)


class BootstrapToken(Model):
    """A token that joining nodes prove themselves with."""

    description: Annotated[str, Size(1, 512)] = ""
    expires: Time | None = None
    groups: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 100), ListType("atomic")] = []
    token: Required[Annotated[str, Size(1, 23)]] = ""
    ttl_seconds: Count | None = None
    usages: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 100), ListType("atomic")] = []


class APIEndpoint(NonEmpty):
    """Address and port of an API server."""

    advertise_address: Annotated[str, Size(1, 39)] = ""
    bind_port: Annotated[int, Range(1)] = 0


class NodeRegistrationOptions(NonEmpty):
    """How the kubelet registers its Node."""

    cri_socket: Annotated[str, Size(1, 512)] = ""
    ignore_preflight_errors: Annotated[list[Annotated[str, Size(1, 512)]], Size(1, 50), ListType("atomic")] = []
    image_pull_policy: Annotated[str, Enum(("Always", "IfNotPresent", "Never"))] = ""
    image_pull_serial: bool | None = None
    kubelet_extra_args: Args = []
    name: Annotated[str, Size(1, 253)] = ""
    # None: the usual ones; an empty list: none at all.
    taints: Annotated[list[Taint], Size(0, 100)] | None = None


class Patches(NonEmpty):
    """Where kubeadm finds patches of static Pod manifests."""

    directory: Annotated[str, Size(1, 512)] = ""


class Timeouts(NonEmpty):
    """How long kubeadm waits for what."""

    control_plane_component_health_check_seconds: Count | None = None
    discovery_seconds: Count | None = None
    etcd_api_call_seconds: Count | None = None
    kubelet_health_check_seconds: Count | None = None
    kubernetes_api_call_seconds: Count | None = None
    tls_bootstrap_seconds: Count | None = None


class InitConfiguration(NonEmpty):
    """Settings of `kubeadm init`."""

    bootstrap_tokens: Annotated[list[BootstrapToken], Size(1, 100), ListType("atomic")] = []
    local_api_endpoint: APIEndpoint = msgspec.field(default_factory=APIEndpoint)
    node_registration: NodeRegistrationOptions = msgspec.field(default_factory=NodeRegistrationOptions)
    patches: Patches = msgspec.field(default_factory=Patches)
    skip_phases: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 50), ListType("atomic")] = []
    timeouts: Timeouts = msgspec.field(default_factory=Timeouts)


class JoinControlPlane(Model):
    """Settings of a joining control plane node. If they are set, the node joins the control plane."""

    local_api_endpoint: APIEndpoint = msgspec.field(default_factory=APIEndpoint)


class BootstrapTokenDiscovery(NonEmpty):
    """Discovery of the cluster by a bootstrap token."""

    api_server_endpoint: Annotated[str, Size(1, 512)] = ""
    ca_cert_hashes: Annotated[list[Annotated[str, Size(1, 512)]], Size(1, 100), ListType("atomic")] = []
    token: Annotated[str, Size(1, 512)] = ""
    unsafe_skip_ca_verification: bool | None = None


class KubeConfigCluster(NonEmpty):
    """The API server in a kubeconfig."""

    certificate_authority_data: Annotated[str, Size(1, 51200), Format("byte")] = ""
    insecure_skip_tls_verify: bool | None = msgspec.field(default=None, name="insecureSkipTLSVerify")
    proxy_url: Annotated[str, Size(1, 512)] = ""
    server: Annotated[str, Size(1, 512)] = ""
    tls_server_name: Annotated[str, Size(1, 512)] = ""


class KubeConfigAuthProvider(Model):
    """An authentication provider and its settings."""

    config: dict[str, str] = {}
    name: Required[Annotated[str, Size(1, 256)]] = ""


class KubeConfigAuthExecEnv(Model):
    """An environment variable of a program that gives credentials."""

    name: Required[Annotated[str, Size(1, 512)]] = ""
    value: Required[Annotated[str, Size(1, 512)]] = ""


class KubeConfigAuthExec(Model):
    """A program that gives credentials."""

    api_version: Annotated[str, Size(1, 512)] = ""
    args: Annotated[list[Annotated[str, Size(1, 512)]], Size(1, 100), ListType("atomic")] = []
    command: Required[Annotated[str, Size(1, 1024)]] = ""
    env: Annotated[list[KubeConfigAuthExecEnv], Size(1, 100), ListType("atomic")] = []
    provide_cluster_info: bool | None = None


class KubeConfigUser(NonEmpty):
    """Credentials in a kubeconfig."""

    auth_provider: KubeConfigAuthProvider = msgspec.field(default_factory=KubeConfigAuthProvider)
    exec: KubeConfigAuthExec = msgspec.field(default_factory=KubeConfigAuthExec)


class FileDiscoveryKubeConfig(Model):
    """The kubeconfig that a joining node is given."""

    cluster: KubeConfigCluster = msgspec.field(default_factory=KubeConfigCluster)
    user: Required[KubeConfigUser] = msgspec.field(default_factory=KubeConfigUser)


class FileDiscovery(Model):
    """Discovery of the cluster by a kubeconfig."""

    kube_config: FileDiscoveryKubeConfig = msgspec.field(default_factory=FileDiscoveryKubeConfig)
    kube_config_path: Required[Annotated[str, Size(1, 512)]] = ""


class Discovery(NonEmpty):
    """How a joining node finds the cluster and learns to trust it."""

    bootstrap_token: BootstrapTokenDiscovery = msgspec.field(default_factory=BootstrapTokenDiscovery)
    file: FileDiscovery = msgspec.field(default_factory=FileDiscovery)
    tls_bootstrap_token: Annotated[str, Size(1, 512)] = ""


class JoinConfiguration(NonEmpty):
    """Settings of `kubeadm join`."""

    ca_cert_path: Annotated[str, Size(1, 512)] = ""
    control_plane: JoinControlPlane | None = None
    discovery: Discovery = msgspec.field(default_factory=Discovery)
    node_registration: NodeRegistrationOptions = msgspec.field(default_factory=NodeRegistrationOptions)
    patches: Patches = msgspec.field(default_factory=Patches)
    skip_phases: Annotated[list[Annotated[str, Size(1, 256)]], Size(1, 50), ListType("atomic")] = []
    timeouts: Timeouts = msgspec.field(default_factory=Timeouts)
