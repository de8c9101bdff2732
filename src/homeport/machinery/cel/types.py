"""Types of the language, as the checker sees them and as `type()` returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from homeport.machinery.cel.schema import Declared


class CelType:
    """A type with its parameters. Object types carry the declaration that gives their fields."""

    __slots__ = ("_hash", "declared", "kind", "name", "params")

    def __init__(
        self,
        kind: str,
        name: str = "",
        params: tuple[CelType, ...] = (),
        declared: Declared | None = None,
    ) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        self.declared = declared
        self._hash = hash((kind, self.name, params, id(declared)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, CelType)
            and self._hash == other._hash
            and self.kind == other.kind
            and self.name == other.name
            and self.declared is other.declared
            and self.params == other.params
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self.kind == "type":
            return f"type({self.params[0]})" if self.params else "type"
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    def __repr__(self) -> str:
        return f"CelType({self})"

    @property
    def is_dyn(self) -> bool:
        return self.kind == "dyn"

    @property
    def is_optional(self) -> bool:
        return self.kind == "opaque" and self.name == "optional_type"

    def runtime(self) -> CelType:
        """The type without parameters: `type([1]) == type(['a'])`, both are lists."""
        return RUNTIME.get(self.kind, self) if self.kind in RUNTIME else CelType(self.kind, self.name)


DYN: Final = CelType("dyn")
NULL: Final = CelType("null", "null_type")
BOOL: Final = CelType("bool")
INT: Final = CelType("int")
UINT: Final = CelType("uint")
DOUBLE: Final = CelType("double")
STRING: Final = CelType("string")
BYTES: Final = CelType("bytes")
TIMESTAMP: Final = CelType("timestamp", "google.protobuf.Timestamp")
DURATION: Final = CelType("duration", "google.protobuf.Duration")
TYPE: Final = CelType("type")
LIST: Final = CelType("list")
MAP: Final = CelType("map")
IP: Final = CelType("opaque", "net.IP")
CIDR: Final = CelType("opaque", "net.CIDR")
OPTIONAL: Final = CelType("opaque", "optional_type")
QUANTITY: Final = CelType("struct", "kubernetes.Quantity")
SEMVER: Final = CelType("struct", "kubernetes.Semver")
URL: Final = CelType("struct", "kubernetes.URL")
NAMED_FORMAT: Final = CelType("struct", "kubernetes.NamedFormat")

RUNTIME: Final = {t.kind: t for t in (NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)} | {
    "type": TYPE,
    "list": LIST,
    "map": MAP,
}

SCALARS: Final = frozenset({"bool", "int", "uint", "double", "duration", "timestamp"})


def list_of(element: CelType) -> CelType:
    return CelType("list", params=(element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", params=(key, value))


def type_of(t: CelType) -> CelType:
    return CelType("type", params=(t,))


def optional_of(t: CelType) -> CelType:
    return CelType("opaque", "optional_type", (t,))


def param(name: str) -> CelType:
    return CelType("param", name)


def is_scalar(t: CelType) -> bool:
    """Whether values of the type have one fixed size, whatever they are."""
    return t.kind in SCALARS or (t.is_optional and bool(t.params) and is_scalar(t.params[0]))


NAMED_TYPES: Final[dict[str, CelType]] = {
    "bool": BOOL,
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "null_type": NULL,
    "type": TYPE,
    "dyn": DYN,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Duration": DURATION,
    "net.IP": IP,
    "net.CIDR": CIDR,
    "optional_type": optional_of(DYN),
    "kubernetes.Quantity": QUANTITY,
    "kubernetes.Semver": SEMVER,
    "kubernetes.URL": URL,
    "kubernetes.NamedFormat": NAMED_FORMAT,
}
