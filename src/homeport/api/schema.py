"""What a type says about its wire form beyond its Python type: marks for `Annotated[...]`.

The API server enforces them, through the CustomResourceDefinitions made from the types; decoding doesn't check them a
second time. `Size` counts characters of a string, items of a list, or properties of an object.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")


class Mark(msgspec.Struct, frozen=True):
    """Something that a schema says of a field or, in `__schema__`, of a type."""


class Needed(Mark, frozen=True):
    """The field has to be there. Attributes have defaults all the same, so that a part of an object can be read."""


class Size(Mark, frozen=True):
    min: int | None = None
    max: int | None = None


class Range(Mark, frozen=True):
    min: int | None = None
    max: int | None = None


class Pattern(Mark, frozen=True):
    regex: str


class Enum(Mark, frozen=True):
    values: tuple[str, ...]


class Format(Mark, frozen=True):
    """Of strings: `date-time`, `byte`. Of numbers: `int64` (`int32` is what an int has without, `""` asks for none)."""

    name: str


class ListType(Mark, frozen=True):
    """How server-side apply merges a list: `map` by keys, `set`, or `atomic`."""

    kind: str
    keys: tuple[str, ...] = ()


class Atomic(Mark, frozen=True):
    """Server-side apply owns the object as a whole."""


class Preserve(Mark, frozen=True):
    """Any JSON value (or, of an object, any further field) is kept as it is."""


class Loose(Mark, frozen=True):
    """Written in more than one way: any JSON is let in, and admission turns it into the type or refuses it."""


class Default(Mark, frozen=True):
    value: Any

    def __hash__(self) -> int:  # annotations are hashed, and a default may be an object
        return hash(repr(self.value))


class Description(Mark, frozen=True):
    """What `kubectl explain` shows. For kinds of plugins; the kinds of this package have tables in `description/`."""

    text: str


class Rule(Mark, frozen=True):
    """A CEL rule, and what the user reads when it is broken."""

    rule: str
    message: str = ""
    reason: str = ""
    field_path: str = ""


class Shape(Mark, frozen=True):
    """The properties of what we read as a plain dict. Descriptions of fields know it by its name."""

    name: str
    properties: tuple[tuple[str, Any], ...]  # name > type


Required = Annotated[T, Needed()]
