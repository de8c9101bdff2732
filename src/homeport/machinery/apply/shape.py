"""What a schema says about merging, compiled once per schema and grown lazily.

Built-in kinds differ from custom ones in one thing: a struct that is no pointer is always there, so a field that is
absent in JSON counts as its zero value (`zero`), and creating it makes nobody the owner of the empty struct.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from homeport.machinery.schema.node import MISSING, Schema

_NUMERIC: Final = ("integer", "number")
_RAW_EXTENSION: Final = ".runtime.RawExtension"
_GVK: Final = "x-kubernetes-group-version-kind"


class Shape:
    """How values at one place merge. A value's own kind chooses among `scalar`, `is_list` and `is_map`."""

    __slots__ = (
        "_element", "_fields", "_item", "_schema", "_unknown", "declared", "is_list", "is_map", "is_object", "keys",
        "list_atomic", "map_atomic", "scalar", "typed", "zero",
    )  # fmt: skip

    def __init__(self, schema: Schema | None, *, typed: bool = False, unknown: bool = False) -> None:
        """`unknown`: a schema further up keeps undeclared fields, which holds for everything below it."""
        self._schema = schema
        self._fields: dict[str, Shape | None] = {}
        self._item: Shape | None = None
        self._element: Shape | None = None
        self.typed = typed
        self.zero: Any = MISSING
        self.keys: tuple[str, ...] = ()
        self.list_atomic = True
        self.map_atomic = False
        self.declared: Mapping[str, Any] = {}
        self.is_object = False
        if schema is None:
            self.scalar, self.is_list, self.is_map, self._unknown = "untyped", True, True, True
            return
        self._unknown = unknown or schema.preserve_unknown
        kind = schema.type
        self.scalar = _scalar(schema)
        self.is_list = kind in ("array", "")
        self.is_map = kind in ("object", "")
        self.map_atomic = schema.map_atomic
        self.declared = schema.raw.get("properties") or {}
        if schema.embedded:
            self.make_object()
        if self.is_list:
            self._list(schema)

    def make_object(self) -> None:
        """An object as a whole, here or embedded: custom schemas leave apiVersion, kind and metadata unsaid."""
        self.is_object = True
        self._fields.update({"apiVersion": _NAME, "kind": _NAME} if not self.typed else {})
        metadata = Shape(self._schema.properties["metadata"]) if self._schema and "metadata" in self.declared else None
        if metadata is None or not metadata.declared:
            self._fields["metadata"] = _META
        if self._schema is not None:
            self.declared = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _ANY_OBJECT, **self.declared}

    def _list(self, schema: Schema) -> None:
        if "x-kubernetes-list-type" in schema.raw:
            self.list_atomic = schema.list_type == "atomic"
            self.keys = schema.list_keys if schema.list_type == "map" else ()
        elif "merge" in schema.patch_strategies:
            # Old built-in lists say how they merge only in the words of strategic merge patch.
            self.list_atomic = False
            self.keys = (schema.patch_merge_key,) if schema.patch_merge_key else ()

    def field(self, name: str) -> Shape | None:
        """None where the schema allows no such field."""
        if name in self._fields:
            return self._fields[name]
        if name not in self.declared:
            return self.element
        found = self._fields[name] = self._declared_field(name)
        return found

    def _declared_field(self, name: str) -> Shape:
        raw = self.declared[name]
        if str(raw.get("$ref", "")).endswith(_RAW_EXTENSION):
            return _atomic_anything()
        assert self._schema is not None
        shape = Shape(self._schema.properties[name], typed=self.typed, unknown=self._unknown)
        if self.typed:
            shape.zero = _zero(raw, name in self._schema.required)
        return shape

    @property
    def element(self) -> Shape | None:
        """The shape of values under undeclared keys."""
        if self._element is None:
            self._element = self._make_element()
        return self._element

    def _make_element(self) -> Shape | None:
        schema = self._schema
        if schema is None:
            return self
        raw = schema.raw.get("additionalProperties")
        if isinstance(raw, Mapping) and schema.additional is not None:
            return Shape(schema.additional, typed=self.typed, unknown=self._unknown)
        if raw is True or (raw is None and (self._unknown or not schema.raw.get("properties"))):
            return DEDUCED
        return None

    @property
    def item(self) -> Shape:
        if self._item is None:
            schema = self._schema
            if schema is None or schema.items is None:
                self._item = DEDUCED
            else:
                self._item = Shape(schema.items, typed=self.typed, unknown=self._unknown)
        return self._item

    def key_default(self, name: str) -> Any:
        """The value that a key field of this item has when it isn't written; MISSING without one."""
        raw = self.declared.get(name)
        if raw is None or self._schema is None:
            return MISSING
        return self._schema.properties[name].default


def _scalar(schema: Schema) -> str:
    kind = schema.type
    if kind in _NUMERIC:
        return "numeric"
    if kind == "boolean":
        return "boolean"
    if kind == "string":
        return "string" if schema.format in ("", "byte") else "untyped"
    return "untyped" if kind == "" else ""


def _zero(raw: Mapping[str, Any], required: bool) -> Any:
    """What Go would find in a field that JSON leaves out and that can't be left out in Go."""
    default = raw.get("default", MISSING)
    if default is not MISSING and not default:
        return default
    return None if required and default is MISSING else MISSING


DEDUCED: Final = Shape(None)


def _atomic_anything() -> Shape:
    shape = Shape(None)
    shape.map_atomic = True
    return shape


_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_ANY_OBJECT: Final = {"type": "object"}
_TIME: Final = {"type": "string", "format": "date-time"}
_NUMBER: Final = {"type": "integer", "format": "int64"}
_OBJECT_META: Final = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": _NUMBER,
        "deletionTimestamp": _TIME,
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "generateName": _TEXT,
        "generation": _NUMBER,
        "labels": _TEXTS,
        "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        "name": _TEXT,
        "namespace": _TEXT,
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "apiVersion": _TEXT,
                    "blockOwnerDeletion": {"type": "boolean"},
                    "controller": {"type": "boolean"},
                    "kind": _TEXT,
                    "name": _TEXT,
                    "uid": {"type": "string", "default": ""},
                },
                "x-kubernetes-map-type": "atomic",
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
    },
}
_META: Final = Shape(Schema(_OBJECT_META))
_NAME: Final = Shape(Schema(_TEXT))


@lru_cache(maxsize=2048)
def shape_of(schema: Schema | None) -> Shape:
    """The shape of whole objects of a kind. Without a schema maps are granular and lists atomic."""
    root = Shape(schema, typed=schema is not None and _GVK in schema.raw)
    root.make_object()
    return root
