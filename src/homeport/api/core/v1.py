"""Types."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from homeport.api.field import IntOrString, Long, Time
from homeport.api.meta import Model
from homeport.api.schema import Atomic, Default, Mark, Required


class ConfigMapKeySelector(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    key: Required[str] = ""
    name: Annotated[str, Default("")] = ""
    optional: bool | None = None


class ObjectFieldSelector(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    api_version: str = ""
    field_path: Required[str] = ""


class FileKeySelector(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    key: Required[str] = ""
    optional: Annotated[bool, Default(False)] | None = None
    path: Required[str] = ""
    volume_name: Required[str] = ""


class ResourceFieldSelector(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    container_name: str = ""
    divisor: IntOrString | None = None
    resource: Required[str] = ""


class SecretKeySelector(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    key: Required[str] = ""
    name: Annotated[str, Default("")] = ""
    optional: bool | None = None


class EnvVarSource(Model):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class Taint(Model):
    effect: Required[str] = ""
    key: Required[str] = ""
    time_added: Time | None = None
    value: str = ""


class ObjectReference(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class NodeSwapStatus(Model):
    capacity: Long | None = None


class NodeSystemInfo(Model):
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
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    api_group: str | None = None
    kind: Required[str] = ""
    name: Required[str] = ""


class LocalObjectReference(Model):
    __schema__: ClassVar[tuple[Mark, ...]] = (Atomic(),)

    name: Annotated[str, Default("")] = ""
