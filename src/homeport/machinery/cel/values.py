"""Values at run time.

Most are plain Python: None, bool, int, float, str, bytes, list and dict. The classes here are the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from homeport.machinery.cel.errors import EvaluationError, no_such_key, no_such_overload
from homeport.machinery.cel.names import escape, unescape

if TYPE_CHECKING:
    from homeport.machinery.cel.schema import Declared


class Uint(int):
    """An unsigned integer. Equal to the int of the same value, but of another type."""

    __slots__ = ()


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.ns == other.ns

    def __hash__(self) -> int:
        return hash(("duration", self.ns))

    def __lt__(self, other: Duration) -> bool:
        return self.ns < other.ns

    def __repr__(self) -> str:
        return f"Duration({self.ns})"


class Timestamp:
    """A moment in nanoseconds since 1970, and the offset it was written with."""

    __slots__ = ("ns", "offset")

    def __init__(self, ns: int, offset: int = 0) -> None:
        self.ns = ns
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.ns == other.ns

    def __hash__(self) -> int:
        return hash(("timestamp", self.ns))

    def __lt__(self, other: Timestamp) -> bool:
        return self.ns < other.ns

    def __repr__(self) -> str:
        return f"Timestamp({self.ns})"


_MISSING: Final = object()


class Optional:
    """A value that may be absent."""

    __slots__ = ("_value",)

    def __init__(self, value: Any = _MISSING) -> None:
        self._value = value

    @property
    def present(self) -> bool:
        return self._value is not _MISSING

    @property
    def value(self) -> Any:
        if self._value is _MISSING:
            raise EvaluationError("optional.none() dereference")
        return self._value

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.present else "Optional()"


NONE: Final = Optional()


class BoolKey:
    """`true` or `false` as the key of a map, where Python would take it for 1 or 0."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoolKey) and self.value == other.value

    def __hash__(self) -> int:
        return hash(("bool", self.value))


_BOOL_KEYS: Final = {True: BoolKey(True), False: BoolKey(False)}


def to_key(value: Any) -> Any:
    """How a value is stored as the key of a dict."""
    kind = type(value)
    if kind is bool:
        return _BOOL_KEYS[value]
    if kind is str or kind is int or kind is Uint or kind is float:
        return value
    raise EvaluationError(f"unsupported key type: {kind.__name__}")


def from_key(key: object) -> Any:
    return key.value if type(key) is BoolKey else key


class SetList(list[Any]):
    """A list of `x-kubernetes-list-type: set`: its order does not matter."""


class MapList(list[Any]):
    """A list of `x-kubernetes-list-type: map`: `keys` identify its items."""

    keys: tuple[str, ...] = ()

    def key_of(self, item: object) -> Any:
        values = item.raw if isinstance(item, ObjectValue) else item
        if not isinstance(values, dict):
            raise no_such_overload()
        return tuple(values.get(key) for key in self.keys)


class ObjectValue:
    """An object of a schema, outside of the paths that are resolved while compiling."""

    __slots__ = ("declared", "raw")

    def __init__(self, raw: dict[str, Any], declared: Declared) -> None:
        self.raw = raw
        self.declared = declared

    def find(self, identifier: object) -> Any:
        """The value of a field, or NOT_FOUND. A null counts as absent, as do unknown properties."""
        if type(identifier) is not str:
            raise no_such_overload()
        name = unescape(identifier)
        value = None if name is None else self.raw.get(name)
        if value is None:
            return NOT_FOUND
        field = self.declared.property(str(name))
        return NOT_FOUND if field is None else field.convert(value)

    def __getitem__(self, identifier: str) -> Any:
        value = self.find(identifier)
        if value is NOT_FOUND:
            raise KeyError(identifier)
        return value

    def names(self) -> Iterator[str]:
        for name in self.raw:
            if self.declared.property(name) is not None:
                yield escape(name) or name

    def __len__(self) -> int:
        return len(self.raw)


class Unknown:
    """Data of `x-kubernetes-preserve-unknown-fields`: can be compared, and nothing else."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw


NOT_FOUND: Final = object()


def find(container: object, key: object) -> Any:
    """The value under a key of a map or an object, or NOT_FOUND."""
    if isinstance(container, dict):
        return container.get(to_key(key), NOT_FOUND)
    if isinstance(container, ObjectValue):
        return container.find(key)
    raise no_such_overload()


def select(operand: object, field: str) -> Any:
    """`operand.field`"""
    if isinstance(operand, Optional):
        return optional_select(operand, field)
    value = find(operand, field)
    if value is NOT_FOUND:
        raise no_such_key(field)
    return value


def optional_select(operand: object, field: str) -> Optional:
    """`operand.?field`"""
    if isinstance(operand, Optional):
        if not operand.present:
            return NONE
        operand = operand.value
    value = find(operand, field)
    return NONE if value is NOT_FOUND else Optional(value)


def has(operand: object, field: str) -> bool:
    """`has(operand.field)`"""
    if isinstance(operand, Optional):
        return operand.present and find(operand.value, field) is not NOT_FOUND
    return find(operand, field) is not NOT_FOUND


def index(container: object, key: object) -> Any:
    """`container[key]`"""
    if isinstance(container, Optional):
        return optional_index(container, key)
    if isinstance(container, list):
        index = list_position(key)
        if not 0 <= index < len(container):
            raise EvaluationError(f"index out of bounds: {index}")
        return container[index]
    value = find(container, key)
    if value is NOT_FOUND:
        raise no_such_key(key)
    return value


def optional_index(container: object, key: object) -> Optional:
    """`container[?key]`"""
    if isinstance(container, Optional):
        if not container.present:
            return NONE
        container = container.value
    if isinstance(container, list):
        index = list_position(key)
        return Optional(container[index]) if 0 <= index < len(container) else NONE
    value = find(container, key)
    return NONE if value is NOT_FOUND else Optional(value)


def list_position(key: Any) -> int:
    kind = type(key)
    if kind is int or kind is Uint:
        return int(key)
    if kind is float and key.is_integer():
        return int(key)
    raise EvaluationError(f"unsupported index: {key}")


def iterate(container: object) -> Any:
    """What a macro over the container visits: the items of a list, the keys of a map."""
    if isinstance(container, list):
        return container
    if isinstance(container, dict):
        return map(from_key, container)
    if isinstance(container, ObjectValue):
        return container.names()
    raise EvaluationError("got a value that can't be iterated, expected iterable type")


def iterate_pairs(container: object) -> Any:
    """Index and item of a list, key and value of a map."""
    if isinstance(container, list):
        return enumerate(container)
    if isinstance(container, dict):
        return ((from_key(key), value) for key, value in container.items())
    if isinstance(container, ObjectValue):
        present = ((key, container.find(key)) for key in container.names())
        return ((key, value) for key, value in present if value is not NOT_FOUND)
    raise EvaluationError("unsupported comprehension range type")


def as_bool(value: object) -> bool:
    """Guards a condition whose type is only known now."""
    if value is True or value is False:
        return bool(value)
    raise no_such_overload()
