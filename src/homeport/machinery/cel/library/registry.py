"""Declarations of functions: what the checker resolves calls to, and what runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from homeport.machinery.cel import types as t
from homeport.machinery.cel.compare import type_of_value
from homeport.machinery.cel.errors import EvaluationError, no_such_overload
from homeport.machinery.cel.types import CelType
from homeport.machinery.cel.values import Optional

A: Final = t.param("A")
B: Final = t.param("B")


class Overload(NamedTuple):
    """One signature of a function. `params` are the type parameters that occur in it."""

    id: str
    member: bool
    args: tuple[CelType, ...]
    result: CelType
    impl: Callable[..., Any]
    params: tuple[CelType, ...]


class Function(NamedTuple):
    name: str
    overload: Overload


def function(name: str, id: str, args: Sequence[CelType], result: CelType, impl: Callable[..., Any]) -> Function:
    return Function(name, _overload(id, False, args, result, impl))


def method(name: str, id: str, args: Sequence[CelType], result: CelType, impl: Callable[..., Any]) -> Function:
    """A function called on its first argument: `args[0].name(...)`."""
    return Function(name, _overload(id, True, args, result, impl))


def _overload(id: str, member: bool, args: Sequence[CelType], result: CelType, impl: Callable[..., Any]) -> Overload:
    found: dict[CelType, None] = {}
    for each in (*args, result):
        _collect(each, found)
    return Overload(id, member, tuple(args), result, impl, tuple(found))


def _collect(of: CelType, found: dict[CelType, None]) -> None:
    if of.kind == "param":
        found[of] = None
    for inner in of.params:
        _collect(inner, found)


def table(functions: Iterable[Function]) -> dict[str, tuple[Overload, ...]]:
    grouped: dict[str, list[Overload]] = {}
    for each in functions:
        grouped.setdefault(each.name, []).append(each.overload)
    return {name: tuple(overloads) for name, overloads in grouped.items()}


def accepts(declared: CelType, value: object) -> bool:
    """Whether a value may be passed where `declared` is expected."""
    kind = declared.kind
    if kind in ("dyn", "param"):
        return True
    actual = type_of_value(value)
    if declared.is_optional:
        return isinstance(value, Optional)
    return actual.kind == kind and (kind not in ("opaque", "struct") or actual.name == declared.name)


class Dispatch:
    """Picks the overload when types are only known at run time."""

    __slots__ = ("_name", "_overloads")

    def __init__(self, name: str, overloads: tuple[Overload, ...]) -> None:
        self._name = name
        self._overloads = overloads

    def __call__(self, *args: Any) -> Any:
        for overload in self._overloads:
            if all(map(accepts, overload.args, args)):
                return overload.impl(*args)
        if not self._name[0].isalpha():  # an operator
            raise no_such_overload()
        shown = ", ".join(type_of_value(arg).name for arg in args)
        raise EvaluationError(f"no such overload: {self._name}({shown})")
