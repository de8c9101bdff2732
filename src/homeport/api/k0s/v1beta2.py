"""The k0s kinds, version v1beta2."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.k0s.part import (
    BOOTSTRAP_GROUP,
    CONTROL_PLANE_GROUP,
    Conditions,
    ContentRef,
    ContentSource,
    ControlPlaneSpec,
    EmbeddedMeta,
    File,
    Ignition,
    InstallSpec,
    Preserved,
    SecretMeta,
    TemplateSpec,
    Tunneling,
    V1Beta2Status,
)
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Default, Enum, Required

__all__ = [
    "ConfigStatus",
    "ContentRef",
    "ContentSource",
    "File",
    "K0sConfigSpec",
    "K0sControlPlane",
    "K0sControlPlaneTemplate",
    "K0sControllerConfig",
    "K0sWorkerConfig",
    "K0sWorkerConfigTemplate",
    "Provisioner",
]


class Provisioner(Model):
    custom_user_data_ref: ContentSource | None = None
    ignition: Ignition | None = None
    platform: Annotated[str, Enum(("linux", "windows")), Default("linux")] = "linux"
    type: Annotated[
        str, Enum(("cloud-config", "ignition", "powershell", "powershell-xml")), Default("cloud-config")
    ] = "cloud-config"


class HostSpec(InstallSpec):
    """Of workers and controllers."""

    post_k0s_commands: list[str] = []
    pre_k0s_commands: list[str] = []
    provisioner: Provisioner = msgspec.field(default_factory=Provisioner)
    secret_metadata: SecretMeta | None = None


class ConfigInitialization(Model):
    data_secret_created: bool | None = None


class ConfigStatus(Model):
    conditions: Conditions = []
    data_secret_name: str = ""
    initialization: ConfigInitialization = msgspec.field(default_factory=ConfigInitialization)


class K0sWorkerConfigSpec(HostSpec):
    version: str = ""


@resource(BOOTSTRAP_GROUP, "v1beta2", "K0sWorkerConfig", "k0sworkerconfigs")
class K0sWorkerConfig(Object):
    """A K0sWorkerConfig says how k0s makes a worker node of a machine."""

    spec: K0sWorkerConfigSpec = msgspec.field(default_factory=K0sWorkerConfigSpec)
    status: ConfigStatus = msgspec.field(default_factory=ConfigStatus)


class K0sWorkerConfigTemplateResource(Model):
    metadata: EmbeddedMeta = msgspec.field(default_factory=EmbeddedMeta)
    spec: K0sWorkerConfigSpec = msgspec.field(default_factory=K0sWorkerConfigSpec)


class K0sWorkerConfigTemplateSpec(Model):
    template: K0sWorkerConfigTemplateResource = msgspec.field(default_factory=K0sWorkerConfigTemplateResource)


@resource(BOOTSTRAP_GROUP, "v1beta2", "K0sWorkerConfigTemplate", "k0sworkerconfigtemplates")
class K0sWorkerConfigTemplate(Object):
    """A K0sWorkerConfigTemplate is the template of the K0sWorkerConfigs of a MachineDeployment."""

    spec: K0sWorkerConfigTemplateSpec = msgspec.field(default_factory=K0sWorkerConfigTemplateSpec)


class K0sConfigSpec(HostSpec):
    """Of controllers."""

    k0s: Preserved | None = None
    tunneling: Tunneling = msgspec.field(default_factory=Tunneling)


class K0sControllerConfigSpec(K0sConfigSpec):
    version: str = ""


@resource(BOOTSTRAP_GROUP, "v1beta2", "K0sControllerConfig", "k0scontrollerconfigs")
class K0sControllerConfig(Object):
    """A K0sControllerConfig says how k0s makes a controller of a machine."""

    spec: K0sControllerConfigSpec = msgspec.field(default_factory=K0sControllerConfigSpec)
    status: ConfigStatus = msgspec.field(default_factory=ConfigStatus)


class K0sControlPlaneSpec(ControlPlaneSpec):
    k0s_config_spec: Required[K0sConfigSpec] = msgspec.field(default_factory=K0sConfigSpec)


class K0sControlPlaneStatus(V1Beta2Status):
    """Observed state of the control plane."""


_NEW_STATUS = {"initialization": {"controlPlaneInitialized": False}, "version": ""}


@resource(CONTROL_PLANE_GROUP, "v1beta2", "K0sControlPlane", "k0scontrolplanes")
class K0sControlPlane(Object):
    """A K0sControlPlane is the control plane of a Cluster: Machines that run k0s as controllers."""

    spec: K0sControlPlaneSpec = msgspec.field(default_factory=K0sControlPlaneSpec)
    status: Annotated[K0sControlPlaneStatus, Default(_NEW_STATUS)] = msgspec.field(
        default_factory=K0sControlPlaneStatus
    )


class K0sControlPlaneTemplateResourceSpec(TemplateSpec):
    k0s_config_spec: Required[K0sConfigSpec] = msgspec.field(default_factory=K0sConfigSpec)


class K0sControlPlaneTemplateResource(Model):
    metadata: EmbeddedMeta = msgspec.field(default_factory=EmbeddedMeta)
    spec: K0sControlPlaneTemplateResourceSpec = msgspec.field(default_factory=K0sControlPlaneTemplateResourceSpec)


class K0sControlPlaneTemplateSpec(Model):
    template: K0sControlPlaneTemplateResource = msgspec.field(default_factory=K0sControlPlaneTemplateResource)


@resource(CONTROL_PLANE_GROUP, "v1beta2", "K0sControlPlaneTemplate", "k0scontrolplanetemplates")
class K0sControlPlaneTemplate(Object):
    """A K0sControlPlaneTemplate is the template of control planes for a ClusterClass."""

    spec: K0sControlPlaneTemplateSpec = msgspec.field(default_factory=K0sControlPlaneTemplateSpec)
