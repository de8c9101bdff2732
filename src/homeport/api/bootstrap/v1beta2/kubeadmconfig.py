"""KubeadmConfig: how one host becomes a node."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta2.host import NTP, DiskSetup, File, IgnitionSpec, User
from homeport.api.bootstrap.v1beta2.kubeadm import ClusterConfiguration, InitConfiguration, JoinConfiguration
from homeport.api.field import Conditions, NonEmpty, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Size


class KubeadmConfigSpec(NonEmpty):
    """Settings of kubeadm and of the host."""

    boot_commands: Annotated[list[Annotated[str, Size(1, 10240)]], Size(1, 1000), ListType("atomic")] = []
    cluster_configuration: ClusterConfiguration = msgspec.field(default_factory=ClusterConfiguration)
    disk_setup: DiskSetup = msgspec.field(default_factory=DiskSetup)
    files: Annotated[list[File], Size(1, 200), ListType("atomic")] = []
    format: Annotated[str, Enum(("cloud-config", "ignition"))] = ""
    ignition: IgnitionSpec = msgspec.field(default_factory=IgnitionSpec)
    init_configuration: InitConfiguration = msgspec.field(default_factory=InitConfiguration)
    join_configuration: JoinConfiguration = msgspec.field(default_factory=JoinConfiguration)
    mounts: Annotated[
        list[Annotated[list[Annotated[str, Size(1, 512)]], Size(1, 100)]], Size(1, 100), ListType("atomic")
    ] = []
    ntp: NTP = msgspec.field(default_factory=NTP)
    post_kubeadm_commands: Annotated[list[Annotated[str, Size(1, 10240)]], Size(1, 1000), ListType("atomic")] = []
    pre_kubeadm_commands: Annotated[list[Annotated[str, Size(1, 10240)]], Size(1, 1000), ListType("atomic")] = []
    users: Annotated[list[User], Size(1, 100), ListType("atomic")] = []
    verbosity: int | None = None


class KubeadmConfigV1Beta1DeprecatedStatus(Model):
    """What v1beta1 reported; nobody reads it any more."""

    conditions: list[OldCondition] = []
    failure_message: Annotated[str, Size(1, 10240)] = ""
    failure_reason: Annotated[str, Size(1, 256)] = ""


class KubeadmConfigDeprecatedStatus(Model):
    """Status of older versions of the API."""

    v1beta1: KubeadmConfigV1Beta1DeprecatedStatus = msgspec.field(default_factory=KubeadmConfigV1Beta1DeprecatedStatus)


class KubeadmConfigInitializationStatus(NonEmpty):
    """Whether the bootstrap data was there once."""

    data_secret_created: bool | None = None


class KubeadmConfigStatus(NonEmpty):
    """Where the bootstrap data is."""

    conditions: Conditions = []
    data_secret_name: Annotated[str, Size(1, 253)] = ""
    deprecated: KubeadmConfigDeprecatedStatus = msgspec.field(default_factory=KubeadmConfigDeprecatedStatus)
    initialization: KubeadmConfigInitializationStatus = msgspec.field(default_factory=KubeadmConfigInitializationStatus)
    observed_generation: Annotated[int, Range(1), Format("int64")] = 0


@resource("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig", "kubeadmconfigs")
class KubeadmConfig(Object):
    """A KubeadmConfig describes how kubeadm turns a host into a Node. The bootstrap data is created from it."""

    spec: KubeadmConfigSpec = msgspec.field(default_factory=KubeadmConfigSpec)
    status: KubeadmConfigStatus = msgspec.field(default_factory=KubeadmConfigStatus)
