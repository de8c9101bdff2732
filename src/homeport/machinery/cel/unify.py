"""Assignability of types with type variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from homeport.machinery.cel.types import DYN, CelType

_SIMPLE: Final = frozenset(["bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "struct"])
# null may stand for a value of these, by what the first type checker of the language allowed
_NULLABLE: Final = frozenset(["opaque", "struct", "duration", "timestamp", "null", "dyn"])
_WITH_PARAMS: Final = frozenset(("opaque", "list", "map"))


class Bindings:
    """What type variables stand for so far. Failed attempts leave no trace."""

    def __init__(self) -> None:
        self._bound: dict[CelType, CelType] = {}
        self._count = 0

    def fresh(self) -> CelType:
        self._count += 1
        return CelType("param", f"_{self._count}")

    def assignable(self, left: CelType, right: CelType) -> bool:
        return self.all_assignable((left,), (right,))

    def all_assignable(self, left: Sequence[CelType], right: Sequence[CelType]) -> bool:
        before = dict(self._bound)
        if self._lists(left, right):
            return True
        self._bound = before
        return False

    def resolve(self, of: CelType, *, free_is_dyn: bool = False) -> CelType:
        """The type with its variables replaced by what they stand for."""
        found = self._bound.get(of)
        if found is not None:
            return self.resolve(found, free_is_dyn=free_is_dyn)
        if of.kind == "param":
            return DYN if free_is_dyn else of
        if not of.params:
            return of
        params = tuple(self.resolve(each, free_is_dyn=free_is_dyn) for each in of.params)
        return of if params == of.params else CelType(of.kind, of.name, params, of.declared)

    def instantiate(self, types: Sequence[CelType], params: Sequence[CelType]) -> list[CelType]:
        """A signature with its own, fresh variables."""
        if not params:
            return list(types)
        fresh = {each: self.fresh() for each in params}
        return [_replace(each, fresh) for each in types]

    def _lists(self, left: Sequence[CelType], right: Sequence[CelType]) -> bool:
        return len(left) == len(right) and all(map(self._pair, left, right))

    def _pair(self, left: CelType, right: CelType) -> bool:
        if right.kind == "param":
            valid, bound = self._substitutes(left, right)
            if valid or bound:
                return valid
        if left.kind == "param":
            return self._substitutes(right, left)[0]
        if _wildcard(left) or _wildcard(right):
            return True
        if left.kind == "null" or right.kind == "null":
            return left.kind in _NULLABLE and right.kind in _NULLABLE
        if left.kind in _SIMPLE:
            return left.kind == right.kind and left.name == right.name and left.declared is right.declared
        if left.kind == "type":
            return right.kind == "type"
        if left.kind in _WITH_PARAMS:
            return left.kind == right.kind and left.name == right.name and self._lists(left.params, right.params)
        return False

    def _substitutes(self, value: CelType, variable: CelType) -> tuple[bool, bool]:
        """Whether `value` may stand for the variable, and whether the variable was bound already."""
        if value == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is not None:
            if value == bound:
                return True, True
            if not self._pair(value, bound):
                return False, True
            general = _most_general(value, bound)
            if self._free_of(variable, general):
                self._bound[variable] = general
            return True, True
        if self._free_of(variable, value):
            self._bound[variable] = value
            return True, False
        return False, False

    def _free_of(self, variable: CelType, within: CelType) -> bool:
        if variable == within:
            return False
        if within.kind == "param":
            bound = self._bound.get(within)
            return bound is None or self._free_of(variable, bound)
        return all(self._free_of(variable, each) for each in within.params)


def _wildcard(of: CelType) -> bool:
    return of.kind in ("dyn", "error")


def _replace(of: CelType, by: dict[CelType, CelType]) -> CelType:
    if of.kind == "param":
        return by.get(of, of)
    if not of.params:
        return of
    return CelType(of.kind, of.name, tuple(_replace(each, by) for each in of.params), of.declared)


def most_general(left: CelType, right: CelType) -> CelType:
    return _most_general(left, right)


def _most_general(left: CelType, right: CelType) -> CelType:
    return left if _not_more_specific(left, right) else right


def _not_more_specific(left: CelType, right: CelType) -> bool:
    if left.kind in ("dyn", "param"):
        return True
    if right.kind in ("dyn", "param") or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind in _WITH_PARAMS:
        return (
            left.name == right.name
            and len(left.params) == len(right.params)
            and all(map(_not_more_specific, left.params, right.params))
        )
    return left == right
