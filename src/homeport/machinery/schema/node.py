"""One compiled schema tree: what validation, pruning, defaulting, patching and apply all walk.

Built from a structural OpenAPI v3 schema (a CRD's) or from named definitions with `$ref` (the built-in kinds').
References are resolved on first touch, so recursive definitions need no special care.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()

_REF_PREFIX = "#/components/schemas/"


class Schema:
    """A node. Attributes are read-only by convention; children are built lazily and once."""

    __slots__ = (
        "_additional",
        "_definitions",
        "_items",
        "_properties",
        "default",
        "embedded",
        "format",
        "int_or_string",
        "list_keys",
        "list_type",
        "map_atomic",
        "nullable",
        "patch_merge_key",
        "patch_strategies",
        "preserve_unknown",
        "raw",
        "required",
        "type",
    )

    def __init__(self, raw: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> None:
        outer = raw
        while "$ref" in raw:
            if definitions is None:
                raise ValueError(f"schema reference {raw['$ref']!r} without definitions")
            raw = definitions[raw["$ref"].removeprefix(_REF_PREFIX)]
        self.raw: Mapping[str, Any] = raw
        self._definitions = definitions
        self._properties: dict[str, Schema] | None = None
        self._items: Schema | None = None
        self._additional: Schema | None = None
        self.type: str = raw.get("type", "")
        self.format: str = raw.get("format", "")
        self.required: tuple[str, ...] = tuple(raw.get("required", ()))
        self.default: Any = outer.get("default", raw.get("default", MISSING))
        self.nullable: bool = bool(raw.get("nullable", False))
        self.int_or_string: bool = (
            bool(raw.get("x-kubernetes-int-or-string", False)) or raw.get("format") == "int-or-string"
        )
        self.preserve_unknown: bool = bool(raw.get("x-kubernetes-preserve-unknown-fields", False))
        self.embedded: bool = bool(raw.get("x-kubernetes-embedded-resource", False))
        # The referencing place may refine what the definition says (merge keys are written beside the $ref).
        self.list_type: str = outer.get("x-kubernetes-list-type", raw.get("x-kubernetes-list-type", "atomic"))
        self.list_keys: tuple[str, ...] = tuple(
            outer.get("x-kubernetes-list-map-keys", raw.get("x-kubernetes-list-map-keys", ()))
        )
        self.map_atomic: bool = (
            outer.get("x-kubernetes-map-type", raw.get("x-kubernetes-map-type", "granular")) == "atomic"
        )
        # "merge", "replace", "retainKeys" or a comma-separated pair, as the built-in definitions spell it.
        self.patch_strategies: tuple[str, ...] = tuple(
            s for s in outer.get("x-kubernetes-patch-strategy", "").split(",") if s
        )
        self.patch_merge_key: str = outer.get("x-kubernetes-patch-merge-key", "")

    @property
    def properties(self) -> dict[str, Schema]:
        if self._properties is None:
            children = self.raw.get("properties") or {}
            self._properties = {name: Schema(child, self._definitions) for name, child in children.items()}
        return self._properties

    @property
    def items(self) -> Schema | None:
        if self._items is None and "items" in self.raw:
            self._items = Schema(self.raw["items"], self._definitions)
        return self._items

    @property
    def additional(self) -> Schema | None:
        """The schema of values under undeclared keys, if the node is a map. `true` gives a node that takes anything."""
        if self._additional is None:
            raw = self.raw.get("additionalProperties")
            if raw is True:
                self._additional = Schema({"x-kubernetes-preserve-unknown-fields": True})
            elif isinstance(raw, Mapping):
                self._additional = Schema(raw, self._definitions)
        return self._additional

    def child(self, name: str) -> Schema | None:
        """The schema of field `name`, declared or by additionalProperties; None where it is unknown."""
        return self.properties.get(name) or self.additional

    def beside(self, raw: Mapping[str, Any]) -> Schema:
        """A node for another schema of the same document (an alternative in anyOf, say)."""
        return Schema(raw, self._definitions)

    @property
    def definitions(self) -> Mapping[str, Any] | None:
        return self._definitions

    @property
    def is_map(self) -> bool:
        return self.additional is not None and not self.properties

    def __repr__(self) -> str:
        return f"Schema({self.type or '?'}, {len(self.raw)} keywords)"
