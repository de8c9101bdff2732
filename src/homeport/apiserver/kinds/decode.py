"""Objects of built-in kinds as kube-apiserver reads and writes them.

The real server decodes into Go structs and encodes those again, which clients can see: a wrong type is a 400 in the
decoder's words, `1.5Gi` comes back as `1536Mi`, an empty `nodeSelector` disappears and an absent `resources` comes back
as `{}`. wire.json has what that depends on. `read` is the way in, `fill` adds what is always written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import orjson

from homeport.apiserver.kinds import scalar
from homeport.apiserver.kinds.scalar import DecodeError
from homeport.apiserver.resource import Json

__all__ = ["DecodeError", "fill", "read", "type_of"]


class Type:
    """One Go type. `read` gives the value as it would be encoded again; `zero` is what an unset field is encoded as."""

    name: str  # as error messages spell it
    always = False  # a struct: `omitempty` never leaves it out
    text = False  # a string is its own encoding

    @property
    def filled(self) -> bool:
        """Whether `fill` has anything to do here or below."""
        return False

    def read(self, value: object, unknown: list[str]) -> Any:
        raise DecodeError(value, self.name)

    def fill(self, value: object) -> None:
        """Adds unset fields that are always written."""

    def zero(self) -> Any:
        return None


class Scalar(Type):
    def __init__(
        self, name: str, read: Callable[[Any], Any], zero: Any, *, always: bool = False, text: bool = False
    ) -> None:
        self.text = text
        self.name = name
        self._read = read
        self._zero = zero
        self.always = always

    def read(self, value: object, unknown: list[str]) -> Any:
        return self._read(value)

    def zero(self) -> Any:
        return self._zero


class List(Type):
    def __init__(self, item: Type) -> None:
        self.name = f"[]{item.name}"
        self._item = item

    @property
    def filled(self) -> bool:
        return self._item.filled

    def read(self, value: object, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise DecodeError(value, self.name)
        item = self._item
        if item.text and all(type(found) is str for found in value):
            return value
        for i, found in enumerate(value):
            before = len(unknown)
            value[i] = item.zero() if found is None else item.read(found, unknown)
            for k in range(before, len(unknown)):
                unknown[k] = f"[{i}].{unknown[k]}"
        return value

    def fill(self, value: Any) -> None:
        for found in value:
            if found is not None:
                self._item.fill(found)


class Map(Type):
    def __init__(self, key: str, item: Type, name: str = "") -> None:
        self.name = name or f"map[{key}]{item.name}"
        self._item = item

    @property
    def filled(self) -> bool:
        return self._item.filled

    def read(self, value: object, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise DecodeError(value, self.name)
        item = self._item
        if item.text and all(type(found) is str for found in value.values()):
            return value
        for key, found in value.items():
            before = len(unknown)
            value[key] = item.zero() if found is None else item.read(found, unknown)
            for k in range(before, len(unknown)):
                unknown[k] = f"{key}.{unknown[k]}"
        return value

    def fill(self, value: Any) -> None:
        for found in value.values():
            if found is not None:
                self._item.fill(found)


class Field:
    __slots__ = ("dropped", "omit", "path", "pointer", "text", "type", "written")

    def __init__(self, name: str, kind: Type, pointer: bool, flags: str, embedded: str) -> None:
        self.type = kind
        self.text = kind.text
        self.pointer = pointer
        # An empty value is left out: by omitempty for anything but structs, by omitzero for structs as well.
        leaves = "z" in flags or ("o" in flags and not kind.always)
        self.omit = not pointer and leaves
        self.written = not flags if pointer else not self.omit
        # An empty list that has to be written comes back as null: storage does not tell empty from unset.
        self.dropped = self.omit or (not pointer and isinstance(kind, (List, Map)))
        self.path = f"{embedded}.{name}" if embedded else name


class Struct(Type):
    always = True

    def __init__(self, definition: str) -> None:
        self.name = ".".join(definition.rsplit(".", 2)[1:])
        self._definition = definition
        self._fields: dict[str, Field] | None = None
        self._absent: list[tuple[str, Field]] = []
        self._below: list[tuple[str, Type]] = []

    @property
    def filled(self) -> bool:
        return bool(self.fields) and bool(self._absent or self._below)

    @property
    def fields(self) -> dict[str, Field]:
        if self._fields is None:
            self._fields = {}
            for name, (kind, *rest) in _wire()["structs"][self._definition].items():
                flags, embedded = (*rest, "", "")[:2]
                self._fields[name] = Field(name, type_of(kind.lstrip("*")), kind.startswith("*"), flags, embedded)
            self._absent = [(name, field) for name, field in self._fields.items() if field.written]
            self._below = [(name, field.type) for name, field in self._fields.items() if field.type.filled]
        return self._fields

    def read(self, value: object, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise DecodeError(value, self.name)
        fields = self.fields if self._fields is None else self._fields
        drop: list[str] = []
        for name, found in value.items():
            field = fields.get(name)
            if field is not None and field.text and type(found) is str:  # most fields: nothing to look into
                if not found and field.dropped:
                    drop.append(name)
            elif field is None:
                unknown.append(name)
                drop.append(name)
            elif found is None:
                drop.append(name)
            else:
                before = len(unknown)
                try:
                    new = field.type.read(found, unknown)
                except DecodeError as mistake:
                    raise mistake.within(self.name, field.path) from None
                if len(unknown) > before:
                    unknown[before:] = [f"{name}{'' if below[:1] == '[' else '.'}{below}" for below in unknown[before:]]
                if field.dropped and not new:
                    drop.append(name)
                elif new is not found:
                    value[name] = new
        for name in drop:
            del value[name]
        return value

    def fill(self, value: Any) -> None:
        if self._fields is None:
            _ = self.fields
        for name, field in self._absent:
            if name not in value:
                value[name] = None if field.pointer else field.type.zero()
        for name, kind in self._below:
            found = value.get(name)
            if found or (found is not None and kind.always):
                kind.fill(found)

    def zero(self) -> Any:
        value: Json = {}
        self.fill(value)
        return value


@cache
def _wire() -> Json:
    found: Json = orjson.loads(resources.files(__package__).joinpath("wire.json").read_bytes())
    return found


_SCALARS: dict[str, Type] = {
    "string": Scalar("string", scalar.text, "", text=True),
    "bool": Scalar("bool", scalar.boolean, False),
    "int": Scalar("int", scalar.integer("int", 64), 0),
    "int32": Scalar("int32", scalar.integer("int32", 32), 0),
    "int64": Scalar("int64", scalar.integer("int64", 64), 0),
    "float64": Scalar("float64", scalar.number, 0),
    "[]byte": Scalar("[]uint8", scalar.base64_text, ""),
    "quantity": Scalar("resource.Quantity", scalar.quantity, "0", always=True),
    "intstr": Scalar("intstr.IntOrString", scalar.int_or_string, 0, always=True),
    "time": Scalar("v1.Time", scalar.time, None, always=True),
    "microtime": Scalar("v1.MicroTime", scalar.microtime, None, always=True),
    "duration": Scalar("v1.Duration", scalar.text, "0s", always=True),
    "any": Scalar("runtime.RawExtension", lambda value: value, None, always=True),
}


@cache
def type_of(text: str) -> Type:
    """The type that wire.json spells `text`. Structs look at their fields when they are first used."""
    known = _SCALARS.get(text)
    if known is not None:
        return known
    if text.startswith("[]"):
        return List(type_of(text[2:].lstrip("*")))
    if text.startswith("map["):
        key, _, item = text[4:].partition("]")
        return Map(key, type_of(item.lstrip("*")))
    named = _wire()["named"].get(text)
    if named is None:
        return Struct(text)
    short = ".".join(text.rsplit(".", 2)[-2:])
    if named == "string":
        return Scalar(short, scalar.named_text(short), "", text=True)
    found = type_of(named)
    assert isinstance(found, (Map, List))
    found = Map("", found._item) if isinstance(found, Map) else List(found._item)
    found.name = short
    return found


def read(definition: str, obj: Json) -> list[str]:
    """Decodes `obj` in place; gives the paths of undeclared fields, which are dropped. Raises Mistake."""
    unknown: list[str] = []
    type_of(definition).read(obj, unknown)
    return unknown


def fill(definition: str, obj: Json) -> None:
    type_of(definition).fill(obj)
