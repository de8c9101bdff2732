"""ExtensionConfig: where a runtime extension is reached."""

from __future__ import annotations

from typing import Annotated

import msgspec

from homeport.api.field import Conditions, DeprecatedConditions, LabelSelector, NonEmpty
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import Enum, Format, ListType, Range, Required, Size


class ServiceReference(Model):
    """A Service, a path and a port."""

    name: Required[Annotated[str, Size(1, 63)]] = ""
    namespace: Required[Annotated[str, Size(1, 63)]] = ""
    path: Annotated[str, Size(1, 512)] = ""
    port: int | None = None


class ClientConfig(NonEmpty):
    """How a runtime extension is reached: by URL or by Service."""

    ca_bundle: Annotated[str, Size(1, 51200), Format("byte")] = ""
    service: ServiceReference | None = None
    url: Annotated[str, Size(1, 512)] = ""


class ExtensionConfigSpec(Model):
    """How an extension is reached, and for which namespaces."""

    client_config: Required[ClientConfig] = msgspec.field(default_factory=ClientConfig)
    namespace_selector: LabelSelector = {}
    settings: dict[str, str] = {}


class GroupVersionHook(Model):
    """A hook, and the version of its messages."""

    api_version: Required[Annotated[str, Size(1, 512)]] = ""
    hook: Required[Annotated[str, Size(1, 256)]] = ""


class ExtensionHandler(Model):
    """A handler of an extension."""

    failure_policy: Annotated[str, Enum(("Ignore", "Fail"))] = ""
    name: Required[Annotated[str, Size(1, 512)]] = ""
    request_hook: Required[GroupVersionHook] = msgspec.field(default_factory=GroupVersionHook)
    timeout_seconds: Annotated[int, Range(1)] = 0


class ExtensionConfigStatus(NonEmpty):
    """Which handlers the extension said it has."""

    conditions: Conditions = []
    deprecated: DeprecatedConditions = msgspec.field(default_factory=DeprecatedConditions)
    handlers: Annotated[list[ExtensionHandler], Size(None, 512), ListType("map", ("name",))] = []


@resource("runtime.cluster.x-k8s.io", "v1beta2", "ExtensionConfig", "extensionconfigs", namespaced=False)
class ExtensionConfig(Object):
    """An ExtensionConfig registers a runtime extension, a server that Cluster API calls at defined points."""

    spec: Required[ExtensionConfigSpec] = msgspec.field(default_factory=ExtensionConfigSpec)
    status: ExtensionConfigStatus = msgspec.field(default_factory=ExtensionConfigStatus)
