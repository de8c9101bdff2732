"""Brings objects into the shape of their schema: drops undeclared fields and meaningless nulls, fills in defaults.

Each node of the schema becomes one small closure, built when an object first reaches it. A closure works in place and
returns the paths of dropped fields, relative to its own place; nothing is built for an object that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from homeport.machinery.schema.node import MISSING, Schema

Unknown = list[str] | None
Walk = Callable[[Any], Unknown]

_META_FIELDS = frozenset(("apiVersion", "kind", "metadata"))


class Shaper:
    """Compiles one schema. `builtin`: the definitions of built-in kinds, where an object without fields is open and
    empty defaults only mean `not a pointer in Go`.
    """

    def __init__(
        self, schema: Schema, *, prune: bool, default: bool, builtin: bool = False, meta: Schema | None = None
    ) -> None:
        self._prune = prune
        self._default = default
        self._builtin = builtin
        self._meta = meta
        self._built: dict[tuple[int, bool], Walk | None] = {}
        # The cache goes by the identity of raw schemas, so they must not be freed and their places reused.
        self._kept: list[Schema] = []
        self._root = self._object(schema, embedded=not builtin, preserving=schema.preserve_unknown)

    def __call__(self, obj: dict[str, Any]) -> list[str]:
        return sorted(self._root(obj) or ())

    def _walk(self, schema: Schema | None, preserving: bool = False) -> Walk | None:
        """The closure of a node; None where there is nothing to do, whatever the value."""
        if schema is None:
            return None
        key = (id(schema.raw), preserving)
        if key not in self._built:
            self._kept.append(schema)
            if schema.definitions is None:
                self._built[key] = self._build(schema, preserving)
            else:
                # Definitions may contain themselves: build when first met.
                self._built[key] = self._later(schema, preserving) if _is_container(schema) else None
        return self._built[key]

    def _later(self, schema: Schema, preserving: bool) -> Walk:
        built: Walk | None = None

        def walk(value: Any) -> Unknown:
            nonlocal built
            if built is None:
                built = self._build(schema, preserving) or _nothing
            return built(value)

        return walk

    def _build(self, schema: Schema, preserving: bool) -> Walk | None:
        preserving = preserving or schema.preserve_unknown
        if schema.items is not None or schema.type == "array":
            return self._list(schema, preserving)
        if schema.properties or schema.additional is not None or schema.embedded:
            return self._object(schema, embedded=schema.embedded, preserving=preserving)
        if schema.type == "object" and self._prune and not preserving and not self._builtin:
            return self._object(schema, embedded=False, preserving=False)
        return None

    def _list(self, schema: Schema, preserving: bool) -> Walk | None:
        # An open list keeps undeclared fields of its items too.
        item_walk = self._walk(schema.items, preserving)
        if item_walk is None:
            return None
        walk_item = item_walk

        def walk(value: Any) -> Unknown:
            if value.__class__ is not list:
                return None
            unknown: Unknown = None
            for index, item in enumerate(value):
                below = walk_item(item)
                if below:
                    unknown = _extend(unknown, f"[{index}]", below)
            return unknown

        return walk

    def _object(self, schema: Schema, *, embedded: bool, preserving: bool) -> Walk:
        properties = schema.properties
        known = frozenset(properties) | (_META_FIELDS if embedded else frozenset())
        covers = known.issuperset
        deep = tuple((name, walk) for name, walk in self._children(schema, embedded) if walk is not None)
        defaults = tuple(self._defaults(properties)) if self._default else ()
        keep_nulls = not self._default
        additional = schema.additional
        open_ = preserving or additional is not None or not self._prune or (self._builtin and not properties)
        walk_rest = self._walk(additional) if additional is not None else None
        drop_nulls = self._null_dropper(schema, embedded)

        def walk(obj: Any) -> Unknown:
            if obj.__class__ is not dict:
                return None
            unknown: Unknown = None
            if not open_ and not covers(obj):
                unknown = _drop(obj, known)
            if not keep_nulls and None in obj.values():
                drop_nulls(obj)
            for name, make in defaults:
                if name not in obj:
                    obj[name] = make()
            for name, walk_child in deep:
                if name in obj:
                    below = walk_child(obj[name])
                    if below:
                        unknown = _extend(unknown, name, below)
            if walk_rest is not None:
                for name, value in obj.items():
                    if name not in known:
                        below = walk_rest(value)
                        if below:
                            unknown = _extend(unknown, name, below)
            return unknown

        if deep or defaults or walk_rest is not None or keep_nulls:
            return walk

        def walk_flat(obj: Any) -> Unknown:
            # Only scalars below: the most frequent node of all, and mostly nothing is to do.
            if obj.__class__ is dict and None not in obj.values() and (open_ or covers(obj)):
                return None
            return walk(obj)

        return walk_flat

    def _children(self, schema: Schema, embedded: bool) -> Iterable[tuple[str, Walk | None]]:
        for name, child in schema.properties.items():
            if embedded and name in _META_FIELDS:
                continue
            yield name, self._walk(child)
        if embedded and self._meta is not None:
            yield "metadata", self._walk(self._meta)
            declared = schema.properties.get("metadata")
            if declared is not None and self._default:
                # Metadata has its own fixed shape; only the defaults of what the schema says about it count.
                shaper = Shaper(declared, prune=False, default=True, meta=None)
                yield "metadata", shaper._root

    def _defaults(self, properties: dict[str, Schema]) -> Iterable[tuple[str, Callable[[], Any]]]:
        for name, child in properties.items():
            default = child.default
            if default is MISSING or default is None or (self._builtin and not default):
                continue
            yield name, _maker(default)

    def _null_dropper(self, schema: Schema, embedded: bool) -> Callable[[dict[str, Any]], None]:
        properties, additional = schema.properties, schema.additional

        def drop(obj: dict[str, Any]) -> None:
            # A null that has a default goes as well: the default is filled in right after.
            for name in [name for name, value in obj.items() if value is None]:
                child = properties.get(name) or additional
                if embedded and name == "metadata":
                    obj[name] = {}
                elif child is not None and not child.nullable:
                    del obj[name]

        return drop


def _is_container(schema: Schema) -> bool:
    return bool(schema.raw.get("properties") or schema.raw.get("additionalProperties") or schema.raw.get("items"))


def _nothing(value: Any) -> Unknown:
    return None


def _maker(default: Any) -> Callable[[], Any]:
    if isinstance(default, (dict, list)):
        blob = orjson.dumps(default)
        return lambda: orjson.loads(blob)
    return lambda: default


def _drop(obj: dict[str, Any], known: frozenset[str]) -> list[str]:
    unknown = [name for name in obj if name not in known]
    for name in unknown:
        del obj[name]
    return unknown


def _extend(unknown: Unknown, prefix: str, below: list[str]) -> list[str]:
    paths = [f"{prefix}{path}" if path.startswith("[") else f"{prefix}.{path}" for path in below]
    if unknown is None:
        return paths
    unknown.extend(paths)
    return unknown
