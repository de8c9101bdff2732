"""The k0s kinds, version v1beta1: deprecated, converted to v1beta2."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.k0s import v1beta2
from homeport.api.k0s.part import (
    Conditions,
    ContentSource,
    Ignition,
    InstallSpec,
    Preserved,
    SecretMeta,
    Tunneling,
    V1Beta1Status,
)
from homeport.api.meta import Model
from homeport.api.schema import Default
from homeport.api.version import older


class HostSpec(InstallSpec):
    """Of workers and controllers."""

    custom_user_data_ref: ContentSource | None = None
    ignition: Ignition | None = None
    post_start_commands: list[str] = []
    pre_start_commands: list[str] = []


class ConfigStatus(Model):
    conditions: Conditions = []
    data_secret_name: str = ""
    ready: bool = False


class K0sWorkerConfigSpec(HostSpec):
    secret_metadata: SecretMeta | None = None
    version: str = ""


class K0sConfigSpec(HostSpec):
    """Of controllers."""

    k0s: Preserved | None = None
    tunneling: Tunneling = msgspec.field(default_factory=Tunneling)


class K0sControllerConfigSpec(K0sConfigSpec):
    version: str = ""


class K0sControlPlaneStatus(V1Beta1Status):
    """Observed state of the control plane."""


_NEW_STATUS = {
    "initialization": {"controlPlaneInitialized": False},
    "initialized": False,
    "ready": False,
    "version": "",
}
_REPLACED = {
    v1beta2.ConfigStatus: ConfigStatus,
    v1beta2.K0sWorkerConfigSpec: K0sWorkerConfigSpec,
    v1beta2.K0sConfigSpec: K0sConfigSpec,
    v1beta2.K0sControllerConfigSpec: K0sControllerConfigSpec,
    v1beta2.K0sControlPlaneStatus: Annotated[K0sControlPlaneStatus, Default(_NEW_STATUS)],
}

K0sWorkerConfig = older(v1beta2.K0sWorkerConfig, "v1beta1", _REPLACED)
K0sWorkerConfigTemplate = older(v1beta2.K0sWorkerConfigTemplate, "v1beta1", _REPLACED)
K0sControllerConfig = older(v1beta2.K0sControllerConfig, "v1beta1", _REPLACED)
K0sControlPlane = older(v1beta2.K0sControlPlane, "v1beta1", _REPLACED)
K0sControlPlaneTemplate = older(v1beta2.K0sControlPlaneTemplate, "v1beta1", _REPLACED)
