"""What every object has: its kind's address in the API, metadata, and a form for kinds without a type of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import msgspec

T = TypeVar("T", bound=type)


class Resource(msgspec.Struct, frozen=True):
    """Where a kind is served. Enough to address it on any API server without discovery."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`machines.cluster.x-k8s.io`, `secrets`: as kubectl and RBAC messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def resource(group: str, version: str, kind: str, plural: str, *, namespaced: bool = True) -> Callable[[T], T]:
    """Marks a Struct as the type of a kind."""
    mark = Resource(group, version, kind, plural, namespaced)

    def apply(cls: T) -> T:
        cls.__resource__ = mark  # type: ignore[attr-defined]
        return cls

    return apply


# Go's names capitalise these words whole; msgspec's camel case would not.
_WORDS = {"id": "ID", "uid": "UID", "ip": "IP", "url": "URL", "ca": "CA", "api": "API", "cidr": "CIDR", "dns": "DNS"}


def camel(name: str) -> str:
    """`provider_id` > `providerID`, `api_version` > `apiVersion`: the wire name of a field."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(_WORDS.get(word, word.capitalize()) for word in rest)


class Model(msgspec.Struct, rename=camel, omit_defaults=True, kw_only=True):
    """A part of an object: camel-case on the wire, defaults left out."""


class OwnerReference(Model):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []
    managed_fields: list[Any] = []


class Object(Model):
    """A whole object. Subclasses carry `@resource(...)`."""

    __resource__: ClassVar[Resource]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Unstructured(dict[str, Any]):
    """An object of a kind without a type of ours: the JSON, with the metadata at hand."""

    @property
    def metadata(self) -> dict[str, Any]:
        meta: dict[str, Any] = self.setdefault("metadata", {})
        return meta

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def resource_version(self) -> str:
        return str(self.metadata.get("resourceVersion", ""))
