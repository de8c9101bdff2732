"""Types."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, LabelSelector, OldCondition
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Required, Size


class ServiceReference(Model):
    name: Required[Annotated[str, Size(1, 63)]] = ""
    namespace: Required[Annotated[str, Size(1, 63)]] = ""
    path: Annotated[str, Size(1, 512)] | None = None
    port: int | None = None


class ClientConfig(Model):
    ca_bundle: Annotated[str, Size(1, 51200), Format("byte")] = ""
    service: ServiceReference | None = None
    url: Annotated[str, Size(1, 512)] | None = None


class ExtensionConfigSpec(Model):
    client_config: Required[ClientConfig] = msgspec.field(default_factory=ClientConfig)
    namespace_selector: LabelSelector = {}
    settings: dict[str, str] = {}


class GroupVersionHook(Model):
    api_version: Required[Annotated[str, Size(1, 512)]] = ""
    hook: Required[Annotated[str, Size(1, 256)]] = ""


class ExtensionHandler(Model):
    failure_policy: Annotated[str, Enum(("Ignore", "Fail"))] | None = None
    name: Required[Annotated[str, Size(1, 512)]] = ""
    request_hook: Required[GroupVersionHook] = msgspec.field(default_factory=GroupVersionHook)
    timeout_seconds: int | None = None


class ExtensionConfigV1Beta2Status(Model):
    conditions: Conditions = []


class ExtensionConfigStatus(Model):
    conditions: list[OldCondition] = []
    handlers: Annotated[list[ExtensionHandler], Size(None, 512), ListType("map", ("name",))] = []
    v1beta2: ExtensionConfigV1Beta2Status | None = None


@resource("runtime.cluster.x-k8s.io", "v1alpha1", "ExtensionConfig", "extensionconfigs", namespaced=False)
class ExtensionConfig(Object):
    spec: ExtensionConfigSpec = msgspec.field(default_factory=ExtensionConfigSpec)
    status: ExtensionConfigStatus = msgspec.field(default_factory=ExtensionConfigStatus)
