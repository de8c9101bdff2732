"""KubeadmConfig: how one host becomes a node."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.bootstrap.v1beta1.host import NTP, DiskSetup, File, IgnitionSpec, User
from homeport.api.bootstrap.v1beta1.kubeadm import ClusterConfiguration, InitConfiguration, JoinConfiguration
from homeport.api.field import Conditions, Long, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Size


class KubeadmConfigSpec(Model):
    """Settings of kubeadm and of the host."""

    boot_commands: Annotated[list[Annotated[str, Size(1, 10240)]], Size(None, 1000)] = []
    cluster_configuration: ClusterConfiguration | None = None
    disk_setup: DiskSetup | None = None
    files: Annotated[list[File], Size(None, 200)] = []
    format: Annotated[str, Enum(("cloud-config", "ignition"))] = ""
    ignition: IgnitionSpec | None = None
    init_configuration: InitConfiguration | None = None
    join_configuration: JoinConfiguration | None = None
    mounts: Annotated[list[list[Annotated[str, Size(1, 512)]]], Size(None, 100)] = []
    ntp: NTP | None = None
    post_kubeadm_commands: Annotated[list[Annotated[str, Size(1, 10240)]], Size(None, 1000)] = []
    pre_kubeadm_commands: Annotated[list[Annotated[str, Size(1, 10240)]], Size(None, 1000)] = []
    use_experimental_retry_join: bool = False
    users: Annotated[list[User], Size(None, 100)] = []
    verbosity: int | None = None


class KubeadmConfigV1Beta2Status(Model):
    """Status in the manner of v1beta2."""

    conditions: Conditions = []


class KubeadmConfigStatus(Model):
    """Where the bootstrap data is."""

    conditions: list[OldCondition] = []
    data_secret_name: Annotated[str, Size(1, 253)] | None = None
    failure_message: Annotated[str, Size(1, 10240)] = ""
    failure_reason: Annotated[str, Size(1, 256)] = ""
    observed_generation: Long = 0
    ready: bool = False
    v1beta2: KubeadmConfigV1Beta2Status | None = None


@resource("bootstrap.cluster.x-k8s.io", "v1beta1", "KubeadmConfig", "kubeadmconfigs")
class KubeadmConfig(Object):
    """A KubeadmConfig describes how kubeadm turns a host into a Node. The bootstrap data is created from it."""

    spec: KubeadmConfigSpec = msgspec.field(default_factory=KubeadmConfigSpec)
    status: KubeadmConfigStatus = msgspec.field(default_factory=KubeadmConfigStatus)
