"""Values as Go sees them: JSON, and the few types beyond it that functions give back.

int is Go's int, float its float64, str a string of bytes in UTF-8, of which those that are none are surrogate escapes.
"""

from __future__ import annotations

from typing import Any, Final

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1


class Missing:
    """What a map gives for a key it has not. None is a nil that is there, which has no fields."""

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


class Int64(int):
    """int64: counts like an int, but no function takes one for the other."""


class Duration(Int64):
    """time.Duration: an int64 that is printed as 1h2m3s."""

    type_name = "time.Duration"


class Uint64(int):
    """uint64."""


class Uint8(int):
    """uint8: a byte of a string."""


class Int32(int):
    """int32: a rune."""


class Strings(list[str]):
    """[]string."""


class Ints(list[int]):
    """[]int."""


class Lists(list[list[Any]]):
    """[][]interface {}."""


class NilList(list[Any]):
    """[]interface {} that was never made: empty, but null to JSON."""


class NilStrings(Strings):
    """[]string that was never made."""


class NilMap(dict[str, Any]):
    """map[string]interface {} that was never made: nothing can be put into it."""


class StringMap(dict[str, str]):
    """map[string]string."""

    absent = ""  # the value of a key it has not


class Bytes(bytes):
    """[]uint8."""


class Object:
    """A value with methods."""

    type_name = "*object"
    kind_name = "ptr"

    def json_text(self) -> str:
        return str(self)

    def method(self, name: str) -> tuple[tuple[str, ...], Any] | None:
        """Types of the parameters, and what to call; None if there is no such method."""
        raise AttributeError(name)


class Struct:
    """A struct of Go: `fields` by their names in Go, `keys` the names in JSON of those that JSON writes."""

    type_name = "struct {}"

    def __init__(self, fields: dict[str, Any], keys: dict[str, str] | None = None) -> None:
        self.fields = fields
        self.keys = keys or {}

    def method(self, name: str) -> tuple[tuple[str, ...], Any] | None:
        return None

    def json_items(self) -> list[tuple[str, Any]]:
        """In the order of the declaration, without what is empty."""
        return [(key, self.fields[name]) for name, key in self.keys.items() if truth(self.fields[name])]


# Subclasses first: bool is an int to Python.
_NAMES: Final[tuple[tuple[type, str, str], ...]] = (
    (bool, "bool", "bool"),
    (Int64, "int64", "int64"),
    (Uint64, "uint64", "uint64"),
    (Uint8, "uint8", "uint8"),
    (Int32, "int32", "int32"),
    (int, "int", "int"),
    (float, "float64", "float64"),
    (str, "string", "string"),
    (StringMap, "map[string]string", "map"),
    (dict, "map[string]interface {}", "map"),
    (Bytes, "[]uint8", "slice"),
    (Strings, "[]string", "slice"),
    (Ints, "[]int", "slice"),
    (Lists, "[][]interface {}", "slice"),
    (list, "[]interface {}", "slice"),
)
_TYPES: Final = {kind: (name, short) for kind, name, short in _NAMES}
INTEGERS: Final = frozenset({"int", "int64", "int32"})
UNSIGNED: Final = frozenset({"uint8", "uint64"})


def type_of(value: object) -> str:
    """The name of its type, as %T shows it."""
    return _names_of(value)[0]


def kind_of(value: object) -> str:
    return _names_of(value)[1]


def _names_of(value: object) -> tuple[str, str]:
    """Names of its type and of its kind, as Go's reflect package has them."""
    known = _TYPES.get(type(value))
    if known is not None:
        return known
    if value is None or value is MISSING:
        return "<nil>", "invalid"
    if isinstance(value, Object):
        return value.type_name, value.kind_name
    if isinstance(value, Struct):
        return value.type_name, "ptr" if value.type_name.startswith("*") else "struct"
    named = getattr(value, "type_name", "")
    found = ((name, short) for kind, name, short in _NAMES if isinstance(value, kind))
    name, kind = next(found, (type(value).__name__, "struct"))
    return named or name, kind


def truth(value: object) -> bool:
    """Go's truth: what is empty or zero is false."""
    return True if isinstance(value, Object | Struct) else bool(value)


def same(left: Any, right: Any) -> bool:
    """reflect.DeepEqual: types count as well."""
    if type_of(left) != type_of(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def wrapped(number: int) -> int:
    """As an addition of int64 overflows."""
    return (number - INT_MIN) % (1 << 64) + INT_MIN if not INT_MIN <= number <= INT_MAX else number


def octets(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half of a pair, from a JSON escape: Go's decoder puts this sign in its place.
        return "".join(c if not "\ud800" <= c <= "\udfff" or "\udc80" <= c <= "\udcff" else "�" for c in text).encode(
            "utf-8", "surrogateescape"
        )


def text_of(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
