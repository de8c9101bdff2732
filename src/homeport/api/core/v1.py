"""What other kinds embed of the core group."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from homeport.api.field import IntOrString, Long, Time
from homeport.api.meta import Model
from homeport.api.schema import Atomic, Default, Mark, Pattern, Required


class ConfigMapKeySelector(Model):
    """A key of a ConfigMap."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    key: Required[str] = ""
    name: Annotated[str, Default("")] = ""
    optional: bool | None = None


class ObjectFieldSelector(Model):
    """A field of the Pod."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    api_version: str = ""
    field_path: Required[str] = ""


class FileKeySelector(Model):
    """A key of a file with environment variables."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    key: Required[str] = ""
    optional: Annotated[bool, Default(False)] | None = None
    path: Required[str] = ""
    volume_name: Required[str] = ""


class ResourceFieldSelector(Model):
    """A resource limit or request of a container."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    container_name: str = ""
    divisor: (
        Annotated[
            IntOrString,
            Pattern(
                r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
            ),
        ]
        | None
    ) = None
    resource: Required[str] = ""


class SecretKeySelector(Model):
    """A key of a Secret."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    key: Required[str] = ""
    name: Annotated[str, Default("")] = ""
    optional: bool | None = None


class EnvVarSource(Model):
    """Where the value of an environment variable comes from."""

    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class Taint(Model):
    """A taint of a Node."""

    effect: Required[str] = ""
    key: Required[str] = ""
    time_added: Time | None = None
    value: str = ""


class ObjectReference(Model):
    """An object, wherever it is."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class NodeSwapStatus(Model):
    """Swap of a node."""

    capacity: Long | None = None


class NodeSystemInfo(Model):
    """What a node says about its system."""

    architecture: Required[str] = ""
    boot_id: Required[str] = ""
    container_runtime_version: Required[str] = ""
    kernel_version: Required[str] = ""
    kube_proxy_version: Required[str] = ""
    kubelet_version: Required[str] = ""
    machine_id: Required[str] = ""
    operating_system: Required[str] = ""
    os_image: Required[str] = ""
    swap: NodeSwapStatus | None = None
    system_uuid: Required[str] = msgspec.field(default="", name="systemUUID")


class TypedLocalObjectReference(Model):
    """An object of any kind in the same namespace."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    api_group: str | None = None
    kind: Required[str] = ""
    name: Required[str] = ""


class LocalObjectReference(Model):
    """An object in the same namespace."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    name: Annotated[str, Default("")] = ""
