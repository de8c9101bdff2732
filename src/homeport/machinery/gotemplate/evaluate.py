"""Pipelines, carried out: variables, fields and calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.machinery.gotemplate.budget import Budget
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, fitting, go_name
from homeport.machinery.gotemplate.literal import Number
from homeport.machinery.gotemplate.tree import (
    Call,
    Chain,
    Command,
    Constant,
    Dot,
    Field,
    Nil,
    Operand,
    Pipeline,
    Variable,
)
from homeport.machinery.gotemplate.value import MISSING, NilMap, Struct, truth, type_of

_NOTHING = object()  # no value came through the pipe


class Evaluation:
    """The variables of one template while it is carried out."""

    def __init__(
        self, functions: Mapping[str, Function], budget: Budget, data: Any, *, strict: bool, zero: bool = False
    ) -> None:
        self._functions = functions
        self._budget = budget
        self._strict = strict
        self._zero = zero
        self._variables: list[tuple[str, Any]] = [("$", data)]

    # -- variables -------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        return len(self._variables)

    def forget(self, mark: int) -> None:
        del self._variables[mark:]

    def turn(self, pipeline: Pipeline, key: object, item: object) -> None:
        """Sets the variables of a range for the next item."""
        names = pipeline.variables
        if not names:
            return
        given = (key, item) if len(names) > 1 else (item,)
        if pipeline.declares:
            self._variables[len(self._variables) - len(names) :] = zip(names, given, strict=True)
        else:
            for name, value in zip(names, given, strict=True):
                self._assign(name, value)

    def _assign(self, name: str, value: Any) -> None:
        for i in range(len(self._variables) - 1, -1, -1):
            if self._variables[i][0] == name:
                self._variables[i] = (name, value)
                return
        raise CallError(f"undefined variable {name}")

    def _variable(self, name: str) -> Any:
        for known, value in reversed(self._variables):
            if known == name:
                return value
        raise CallError(f"undefined variable {name}")

    # -- pipelines -------------------------------------------------------------------------------------------------

    def pipeline(self, pipeline: Pipeline, dot: object) -> Any:
        """MISSING for nil, as Go forgets the difference here. Sets the pipeline's variables."""
        value: Any = _NOTHING
        for command in pipeline.commands:
            self._budget.step()
            value = self._command(command, dot, value)
            if value is None:
                value = MISSING
        for name in pipeline.variables:
            if pipeline.declares:
                self._variables.append((name, value))
            else:
                self._assign(name, value)
        return value

    def _command(self, command: Command, dot: Any, piped: Any) -> Any:
        first, given = command.operands[0], command.operands[1:]
        if isinstance(first, Call):
            return self._call(first.name, self._functions[first.name], given, dot, piped)
        if isinstance(first, Field):
            return self._fields(dot, first.path, given, dot, piped)
        if isinstance(first, Chain):
            return self._fields(self._operand(first.of, dot), first.path, given, dot, piped)
        if isinstance(first, Variable) and first.path:
            return self._fields(self._variable(first.name), first.path, given, dot, piped)
        if given or piped is not _NOTHING:
            raise CallError("only functions take arguments")
        if isinstance(first, Nil):
            raise CallError("nil is not a command")
        return self._operand(first, dot)

    def _operand(self, operand: Operand, dot: Any) -> Any:
        if isinstance(operand, Constant):
            return operand.value
        if isinstance(operand, Number):
            return _number(operand, "any")
        if isinstance(operand, Pipeline):
            return self.pipeline(operand, dot)
        if isinstance(operand, Field):
            return self._fields(dot, operand.path, (), dot, _NOTHING)
        if isinstance(operand, Variable):
            return self._fields(self._variable(operand.name), operand.path, (), dot, _NOTHING)
        if isinstance(operand, Call):
            return self._call(operand.name, self._functions[operand.name], (), dot, _NOTHING)
        if isinstance(operand, Chain):
            if isinstance(operand.of, Nil):
                raise CallError("nil has no fields")
            return self._fields(self._operand(operand.of, dot), operand.path, (), dot, _NOTHING)
        return dot if isinstance(operand, Dot) else None

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call(self, name: str, function: Function, given: tuple[Operand, ...], dot: Any, piped: Any) -> Any:
        try:
            function.check_count(len(given) + (piped is not _NOTHING))
        except CallError as wrong:
            raise CallError(f"{name} {wrong}") from None
        if name in ("and", "or"):
            return self._junction(name, given, dot, piped)
        try:
            arguments = [self._argument(each, function.type_at(i), dot) for i, each in enumerate(given)]
            if piped is not _NOTHING:
                arguments.append(fitting(piped, function.type_at(len(given))))
            if function.shallow:
                self._budget.glance(*arguments)
            elif not function.cheap:
                self._budget.spend(*arguments)
            result = function.call(*arguments)
            if not function.cheap and not function.shallow:
                self._budget.spend(result)
        except CallError as wrong:
            raise CallError(f"{name}: {wrong}") from None
        return result

    def _junction(self, name: str, given: tuple[Operand, ...], dot: Any, piped: Any) -> Any:
        """and, or: stop at the first argument that decides."""
        value: Any = None
        for operand in given:
            value = self._argument(operand, "value", dot)
            if truth(value) == (name == "or"):
                return value
        return fitting(piped, "value") if piped is not _NOTHING else value

    def _argument(self, operand: Operand, wanted: str, dot: Any) -> Any:
        if isinstance(operand, Number):
            return _number(operand, wanted)
        if isinstance(operand, Nil):
            if wanted in ("any", "value"):
                return None
            if wanted == "map":
                return NilMap()
            raise CallError(f"{go_name(wanted)} is needed, not nil")
        return fitting(self._operand(operand, dot), wanted)

    def _fields(self, value: Any, path: tuple[str, ...], given: tuple[Operand, ...], dot: Any, piped: Any) -> Any:
        """The last field may be a method, which gets the arguments."""
        for name in path[:-1]:
            value = self._field(value, name, (), dot, _NOTHING)
        return self._field(value, path[-1], given, dot, piped) if path else value

    def _field(self, value: Any, name: str, given: tuple[Operand, ...], dot: Any, piped: Any) -> Any:
        if value is MISSING:
            if self._strict:
                raise CallError(f"there is nothing that has a key {name!r}")
            return MISSING
        if value is None:
            raise CallError(f"a nil has no field {name!r}: ask with 'if' before")
        if type(value) is not dict:
            find = getattr(value, "method", None)
            method = find(name) if find is not None else None
            if method is not None:
                return self._call(name, Function(method[1], method[0], "", cheap=True), given, dot, piped)
            if isinstance(value, Struct) and name in value.fields:
                value = value.fields
        if not isinstance(value, dict):
            raise CallError(f"a value of type {type_of(value)} has no field {name!r}")
        if given or piped is not _NOTHING:
            raise CallError(f".{name} is not a function and takes no arguments")
        if name not in value and self._strict:
            raise CallError(f"the map has no key {name!r}")
        return value.get(name, getattr(value, "absent", None) if self._zero else MISSING)


def _number(number: Number, wanted: str) -> Any:
    """Where a function wants a float, 1 is one; and where it wants an int, 1.0 is one."""
    found: float | None
    if wanted == "int":
        found = number.integer
    elif wanted == "float":
        found = number.floating
    elif wanted in ("any", "value"):
        found = number.floating if number.looks_floating else number.integer
    else:
        found = None
    if found is None:
        needed = "a smaller number" if wanted in ("any", "value") else go_name(wanted)
        raise CallError(f"{needed} is needed, not {number.text}")
    return found
