"""Functions with the types of their parameters: what Go refuses by type is refused here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.value import MISSING, NilMap, StringMap, type_of

_GO_NAMES: Final = {"map": "map[string]interface {}", "float": "float64", "any": "interface {}", "value": "a value"}
_NILLABLE: Final = frozenset({"any", "value", "map"})


@dataclass(frozen=True, slots=True)
class Function:
    """`params` are any, string, int, float, bool or map; `rest` is the type of all further arguments."""

    call: Callable[..., Any]
    params: tuple[str, ...]
    rest: str
    cheap: bool  # takes no longer for large arguments than for small ones
    shallow: bool = False  # looks at the items of its arguments, but not into them

    def type_at(self, position: int) -> str:
        return self.params[position] if position < len(self.params) else self.rest

    def check_count(self, count: int) -> None:
        if self.rest and count < len(self.params):
            raise CallError(f"takes at least {len(self.params)} arguments, not {count}")
        if not self.rest and count != len(self.params):
            raise CallError(f"takes {len(self.params)} arguments, not {count}")


def function(signature: str, call: Callable[..., Any], *, cheap: bool = False) -> Function:
    """`function("int ...any", call)`."""
    names = signature.split()
    rest = names.pop().removeprefix("...") if names and names[-1].startswith("...") else ""
    return Function(call, tuple(names), rest, cheap)


def functions(table: Mapping[str, tuple[str, Callable[..., Any]]], *, cheap: bool = False) -> dict[str, Function]:
    return {name: function(signature, call, cheap=cheap) for name, (signature, call) in table.items()}


def fitting(value: object, wanted: str) -> Any:
    """The value as a function gets it. Raises CallError if it is of another type."""
    if wanted == "any" or wanted == "value":
        return None if value is MISSING else value
    if value is MISSING:
        if wanted in _NILLABLE:
            return NilMap()
        raise CallError(f"a value is missing where {go_name(wanted)} is needed")
    if value is None:
        raise CallError(f"a value is nil where {go_name(wanted)} is needed")
    if _is(value, wanted):
        return value
    raise CallError(f"{go_name(wanted)} is needed, not {type_of(value)}{_hint(value, wanted)}")


def _is(value: Any, wanted: str) -> bool:
    if wanted == "string":
        return isinstance(value, str)
    if wanted == "int":
        return type(value) is int
    if wanted == "bool":
        return isinstance(value, bool)
    if wanted == "float":
        return isinstance(value, float)
    return isinstance(value, dict) and not isinstance(value, StringMap)


def _hint(value: Any, wanted: str) -> str:
    if wanted == "int" and isinstance(value, int | float) and not isinstance(value, bool):
        return ": convert it with int"
    if wanted == "string" and not isinstance(value, dict | list):
        return ": convert it with toString"
    return ""


def go_name(wanted: str) -> str:
    return _GO_NAMES.get(wanted, wanted)
