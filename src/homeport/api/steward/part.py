"""Parts that a TenantControlPlane and a Cluster API control plane share: add-ons, kubelet, Pods.

Parts of Pods (affinity, containers, volumes, ...) go into the Deployment as they are written; the API server that gets
the Deployment checks them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.field import IntOrString, Quantity
from homeport.api.meta import Model
from homeport.api.schema import Default, Enum, ListType, Needed, Preserve, Rule, Size

Preserved = Annotated[dict[str, Any], Preserve()]
Part = Annotated[dict[str, Any], Preserve()]
AddressType = Annotated[str, Enum(("Hostname", "InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS"))]
ServiceType = Annotated[str, Enum(("ClusterIP", "NodePort", "LoadBalancer"))]
ControllerType = Annotated[str, Enum(("haproxy", "nginx", "traefik", "generic"))]
AdmissionController = Annotated[
    str,
    Enum(
        (
            "AlwaysAdmit",
            "AlwaysDeny",
            "AlwaysPullImages",
            "CertificateApproval",
            "CertificateSigning",
            "CertificateSubjectRestriction",
            "DefaultIngressClass",
            "DefaultStorageClass",
            "DefaultTolerationSeconds",
            "DenyEscalatingExec",
            "DenyExecOnPrivileged",
            "DenyServiceExternalIPs",
            "EventRateLimit",
            "ExtendedResourceToleration",
            "ImagePolicyWebhook",
            "LimitPodHardAntiAffinityTopology",
            "LimitRanger",
            "MutatingAdmissionWebhook",
            "NamespaceAutoProvision",
            "NamespaceExists",
            "NamespaceLifecycle",
            "NodeRestriction",
            "OwnerReferencesPermissionEnforcement",
            "PersistentVolumeClaimResize",
            "PersistentVolumeLabel",
            "PodNodeSelector",
            "PodSecurity",
            "PodSecurityPolicy",
            "PodTolerationRestriction",
            "Priority",
            "ResourceQuota",
            "RuntimeClass",
            "SecurityContextDeny",
            "ServiceAccount",
            "StorageObjectInUseProtection",
            "TaintNodesByCondition",
            "ValidatingAdmissionWebhook",
        )
    ),
]
ADMISSION_CONTROLLERS = [
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "MutatingAdmissionWebhook",
    "NamespaceLifecycle",
    "PersistentVolumeClaimResize",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionWebhook",
]
ADDRESS_TYPES = ["InternalIP", "ExternalIP", "Hostname"]
AGENT_IMAGE = "registry.k8s.io/kas-network-proxy/proxy-agent"
SERVER_IMAGE = "registry.k8s.io/kas-network-proxy/proxy-server"
TRUSTD_IMAGE = "ghcr.io/butlerdotdev/steward-trustd"
REGISTRY = "registry.k8s.io"
KONNECTIVITY_PORT = 8132
TRUSTD_PORT = 50001


class ResourceClaim(Model):
    name: Annotated[str, Needed()] = ""
    request: str = ""


class Resources(Model):
    """CPU and memory of a container, as in a Pod."""

    claims: Annotated[list[ResourceClaim], ListType("map", ("name",))] = []
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class Metadata(Model):
    """Labels and annotations in addition to those that the controller sets."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class VolumeMount(Model):
    mount_path: Annotated[str, Needed()] = ""
    mount_propagation: str | None = None
    name: Annotated[str, Needed()] = ""
    read_only: bool | None = None
    recursive_read_only: str | None = None
    sub_path: str | None = None
    sub_path_expr: str | None = None


class RollingUpdate(Model):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class Strategy(Model):
    rolling_update: RollingUpdate | None = None
    type: str = ""


class JSONPatch(Model):
    """One operation of a JSON patch (RFC 6902)."""

    from_: str = msgspec.field(name="from", default="")
    op: Annotated[str, Needed(), Enum(("add", "remove", "replace", "move", "copy", "test"))] = ""
    path: Annotated[str, Needed()] = ""
    value: Annotated[Any, Preserve()] = None


class Kubelet(Model):
    cgroupfs: Annotated[str, Enum(("systemd", "cgroupfs"))] = ""
    configuration_json_patches: list[JSONPatch] = msgspec.field(name="configurationJSONPatches", default=[])
    preferred_address_types: Annotated[list[AddressType], ListType("set"), Size(1), Default(ADDRESS_TYPES)] = (
        msgspec.field(default_factory=ADDRESS_TYPES.copy)
    )


class ImageOverride(Model):
    image_repository: str = ""
    image_tag: str = ""


class KonnectivityServer(Model):
    extra_args: list[str] = []
    image: Annotated[str, Default(SERVER_IMAGE)] = SERVER_IMAGE
    port: Annotated[int, Needed()] = KONNECTIVITY_PORT
    resources: Resources | None = None
    version: str = ""


_TOLERATIONS: list[dict[str, Any]] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


class KonnectivityAgent(Model):
    __schema__ = (
        Rule(
            "self.mode == 'DaemonSet' ? (!has(self.replicas) || self.replicas == 0) "
            ": (!has(self.replicas) || self.replicas > 0)",
            "replicas can be set for mode Deployment alone, and must then be more than 0",
        ),
    )

    extra_args: list[str] = []
    host_network: Annotated[bool, Default(False)] = False
    image: Annotated[str, Default(AGENT_IMAGE)] = AGENT_IMAGE
    mode: Annotated[str, Enum(("DaemonSet", "Deployment")), Default("DaemonSet")] = "DaemonSet"
    replicas: int | None = None
    tolerations: Annotated[list[Part], Default(_TOLERATIONS)] = msgspec.field(default_factory=_TOLERATIONS.copy)
    version: str = ""


class Konnectivity(Model):
    agent: Annotated[KonnectivityAgent, Default({"image": AGENT_IMAGE, "mode": "DaemonSet"})] = msgspec.field(
        default_factory=KonnectivityAgent
    )
    server: Annotated[KonnectivityServer, Default({"image": SERVER_IMAGE, "port": KONNECTIVITY_PORT})] = msgspec.field(
        default_factory=KonnectivityServer
    )


class HostAlias(Model):
    hostnames: Annotated[list[str], Needed()] = []
    ip: Annotated[str, Needed()] = ""


class TCPProxy(Model):
    host_aliases: list[HostAlias] = []
    image: str = ""
    internal_endpoint: str = ""
    resources: Resources | None = None


class CSRApproval(Model):
    auto_approve: Annotated[bool, Needed(), Default(True)] = True


class Talos(Model):
    cert_sans: list[str] = msgspec.field(name="certSANs", default=[])
    image: Annotated[str, Default(TRUSTD_IMAGE)] = TRUSTD_IMAGE
    image_tag: str = ""
    port: Annotated[int, Default(TRUSTD_PORT)] = TRUSTD_PORT
    resources: Resources | None = None


class WorkerBootstrap(Model):
    allowed_subnets: list[str] = []
    csr_approval: Annotated[CSRApproval, Default({"autoApprove": True})] = msgspec.field(default_factory=CSRApproval)
    provider: Annotated[str, Needed()] = ""
    talos: Talos | None = None


class Addons(Model):
    core_dns: ImageOverride | None = None
    konnectivity: Konnectivity | None = None
    kube_proxy: ImageOverride | None = None
    tcp_proxy: TCPProxy | None = None
    worker_bootstrap: WorkerBootstrap | None = None
