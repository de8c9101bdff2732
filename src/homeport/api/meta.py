"""What every object has: its kind's address in the API and metadata. Unstructured holds kinds without a type here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints

import msgspec

from homeport.api.schema import Needed

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
    def type_meta(self) -> dict[str, str]:
        """What every object of the kind begins with."""
        return {"apiVersion": self.api_version, "kind": self.kind}

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
    """An object of a kind without a type in this package: the JSON, with access to its metadata."""

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


_PLAIN = frozenset((str, int, bool, float))


class _Part(NamedTuple):
    """How `wire` writes a field of a struct."""

    attribute: str
    name: str
    default: Any
    kept: bool  # though it has its default value
    struct: bool  # never None, so that an empty one says nothing


@functools.cache
def _parts(cls: type[msgspec.Struct]) -> tuple[_Part, ...]:
    hints = get_type_hints(cls, include_extras=True)
    parts = []
    for field in msgspec.structs.fields(cls):
        factory = field.default_factory
        default = field.default if factory is msgspec.NODEFAULT else factory()
        struct = isinstance(default, msgspec.Struct)
        marks = getattr(hints[field.name], "__metadata__", ())
        # Of texts only those that may be empty: of the others an empty one is no value.
        empty_allowed = struct or isinstance(default, int | float) or (isinstance(default, str) and len(marks) == 1)
        kept = Needed() in marks and empty_allowed
        parts.append(_Part(field.name, field.encode_name, default, kept, struct))
    return tuple(parts)


def wire(value: object) -> Any:
    """The JSON of an object or a part of one, without the nested structs that nobody filled in.

    What is required and may be empty is written though it is, since that is a value, if its struct is written at all.
    """
    if isinstance(value, msgspec.Struct):
        return _wire_struct(value)[0]
    if isinstance(value, dict):
        return {key: item if type(item) in _PLAIN else wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [wire(item) for item in value]
    return value


def wire_differences(before: msgspec.Struct, after: msgspec.Struct) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON of both, of the same type, without the fields that are equal: those need not be written down."""
    changed = tuple(
        part for part in _parts(type(after)) if getattr(before, part.attribute) != getattr(after, part.attribute)
    )
    return _wire_parts(before, changed)[0], _wire_parts(after, changed)[0]


def _wire_struct(value: msgspec.Struct) -> tuple[dict[str, Any], bool]:
    return _wire_parts(value, _parts(type(value)))


def _wire_parts(value: msgspec.Struct, parts: tuple[_Part, ...]) -> tuple[dict[str, Any], bool]:
    """The JSON, and whether anything in it was filled in."""
    out: dict[str, Any] = {}
    filled = False
    for attribute, name, default, kept, struct in parts:
        item = getattr(value, attribute)
        # Most fields are what nobody filled in, and comparing is far cheaper than writing them down.
        if item is None or (not kept and item == default):
            continue
        if struct:
            written, said = _wire_struct(item)
        else:
            written = item if type(item) in _PLAIN else wire(item)
            said = not kept or item != default
        if said or kept:
            out[name] = written
        filled = filled or said
    return out, filled
