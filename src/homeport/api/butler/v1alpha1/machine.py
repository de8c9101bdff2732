"""MachineRequest, ImageSync and LoadBalancerRequest: single things that a provider is asked for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.butler.v1alpha1.part import (
    GROUP,
    VERSION,
    Block,
    ExtraDisk,
    Failure,
    Label,
    Percent,
    ProviderRef,
    SecretRef,
    Text,
)
from homeport.api.field import Conditions, Long, Port, Quantity, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Pattern, Range, Required, Rule, Size

ROLES = ("control-plane", "controlplane", "worker")


class MachineResources(Model):
    """Size of a machine as quantities."""

    cpu: Annotated[int, Range(1, 128)] | None = None
    memory: Quantity = ""
    disk: Quantity = ""


class MachineRequestSpec(Model):
    """The machine that should exist."""

    provider_ref: ProviderRef | None = None
    provider_config_ref: ProviderRef | None = None
    machine_name: Required[Label] = ""
    role: Required[Annotated[str, Enum(ROLES)]] = ""
    cpu: Annotated[int, Range(1, 128)] | None = None
    memory_mb: Annotated[int, Range(1024)] | None = msgspec.field(default=None, name="memoryMB")
    disk_gb: Annotated[int, Range(10)] | None = msgspec.field(default=None, name="diskGB")
    resources: MachineResources | None = None
    extra_disks: list[ExtraDisk] = []
    image: str = ""
    user_data: str = ""
    user_data_secret_ref: SecretRef | None = None
    network_data: str = ""
    labels: dict[str, str] = {}
    paused: bool = False


class MachineRequestStatus(Failure):
    """State of the machine."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Creating", "Running", "Failed", "Deleting", "Deleted", "Unknown"))] = ""
    provider: str = ""
    provider_id: str = ""
    ip_address: str = ""
    ip_addresses: list[str] = []
    mac_address: str = ""
    driver: Block = {}
    attempts: int = 0
    next_attempt: Time | None = None


@resource(GROUP, VERSION, "MachineRequest", "machinerequests")
class MachineRequest(Object):
    """A MachineRequest is one VM on a provider."""

    spec: Required[MachineRequestSpec] = msgspec.field(default_factory=MachineRequestSpec)
    status: MachineRequestStatus = msgspec.field(default_factory=MachineRequestStatus)


class FactoryRef(Model):
    """An image of the Talos image factory."""

    schematic_id: Required[Annotated[str, Size(8, 128)]] = ""
    version: Required[Text] = ""
    arch: Annotated[str, Enum(("amd64", "arm64"))] = ""
    platform: str = ""


class ImageSource(Model):
    """An image by URL or in a file of the machine that runs Homeport."""

    url: Annotated[str, Pattern("^https?://")] = ""
    file: str = ""
    sha256: Annotated[str, Pattern("^[0-9a-f]{64}$")] = ""
    sha512: Annotated[str, Pattern("^[0-9a-f]{128}$")] = ""


class ImageSyncSpec(Model):
    """The image that should exist at a provider."""

    factory_ref: FactoryRef | None = None
    source: ImageSource | None = None
    provider_config_ref: Required[ProviderRef] = msgspec.field(default_factory=ProviderRef)
    format: Annotated[str, Enum(("qcow2", "raw", "raw.xz", "iso"))] = ""
    transfer_mode: Annotated[str, Enum(("direct", "proxy"))] = ""
    display_name: str = ""
    os: str = ""
    deletion_policy: Annotated[str, Enum(("Retain", "Delete"))] = ""


class ImageSyncStatus(Failure):
    """State of the image."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Building", "Downloading", "Uploading", "Ready", "Failed"))] = ""
    progress: Percent | None = None
    provider_image_ref: str = ""
    artifact_url: str = ""
    artifact_sha256: str = msgspec.field(default="", name="artifactSHA256")
    provider_task_id: str = ""
    driver: Block = {}
    attempts: int = 0
    next_attempt: Time | None = None


@resource(GROUP, VERSION, "ImageSync", "imagesyncs")
class ImageSync(Object):
    """An ImageSync brings an image to a provider and keeps it there."""

    spec: Required[ImageSyncSpec] = msgspec.field(default_factory=ImageSyncSpec)
    status: ImageSyncStatus = msgspec.field(default_factory=ImageSyncStatus)


class LoadBalancerTarget(Model):
    """A machine behind a load balancer."""

    ip: str = ""
    instance_id: str = ""
    instance_name: str = ""


class LoadBalancerRequestSpec(Model):
    """The load balancer that should exist."""

    __schema__ = (
        Rule("self.clusterName == oldSelf.clusterName", "clusterName is immutable"),
        Rule("self.providerConfigRef == oldSelf.providerConfigRef", "providerConfigRef is immutable"),
    )

    cluster_name: Required[Label] = ""
    provider_config_ref: Required[ProviderRef] = msgspec.field(default_factory=ProviderRef)
    port: Port | None = None
    health_check_port: Port | None = None
    targets: list[LoadBalancerTarget] = []


class LoadBalancerRequestStatus(Failure):
    """State of the load balancer."""

    conditions: Conditions = []
    observed_generation: Long = 0
    phase: Annotated[str, Enum(("Pending", "Creating", "Ready", "Failed", "Deleting"))] = ""
    endpoint: str = ""
    resource_id: str = ""
    registered_targets: Annotated[int, Range(0)] = 0


@resource(GROUP, VERSION, "LoadBalancerRequest", "loadbalancerrequests")
class LoadBalancerRequest(Object):
    """A LoadBalancerRequest is a load balancer of a cloud. It is stored and not acted on."""

    spec: Required[LoadBalancerRequestSpec] = msgspec.field(default_factory=LoadBalancerRequestSpec)
    status: LoadBalancerRequestStatus = msgspec.field(default_factory=LoadBalancerRequestStatus)
