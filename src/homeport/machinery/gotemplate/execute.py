"""The tree, carried out on a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from homeport.machinery.gotemplate.error import TemplateError
from homeport.machinery.gotemplate.function import FUNCTIONS, truth
from homeport.machinery.gotemplate.parse import Node, Operand, Pipeline, parse
from homeport.machinery.gotemplate.printf import shown

_MISSING = object()  # a key that a map has not: Go prints it in its own way
_MOST_STEPS = 100_000


def render(source: str, values: Mapping[str, Any], *, limit: int = 0) -> str:
    """The text that the template makes of the values; `limit` is for its bytes, 0 for none. Raises TemplateError."""
    return _Execution(values, limit).whole(_parsed(source))


class Template:
    """A template that was read once and is rendered often."""

    def __init__(self, source: str) -> None:
        self._nodes = _parsed(source)

    def render(self, data: Any, *, limit: int = 0) -> str:
        return _Execution(data, limit).whole(self._nodes)


@lru_cache(maxsize=256)
def compiled(source: str) -> Template:
    """Raises TemplateError."""
    return Template(source)


@lru_cache(maxsize=64)
def _parsed(source: str) -> list[Node]:
    return parse(source)


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Execution:
    def __init__(self, values: Mapping[str, Any], limit: int) -> None:
        self._out: list[str] = []
        self._size = 0
        self._limit = limit
        self._steps = 0
        self._variables: list[tuple[str, Any]] = [("$", values)]

    def whole(self, nodes: list[Node]) -> str:
        self._run(nodes, self._variables[0][1])
        return "".join(self._out)

    def _run(self, nodes: list[Node], dot: Any) -> None:
        for node in nodes:
            self._step(node.line)
            if node.kind == "text":
                self._emit(node.text, node.line)
            elif node.kind == "break":
                raise _Break
            elif node.kind == "continue":
                raise _Continue
            else:
                self._act(node, dot)

    def _act(self, node: Node, dot: Any) -> None:
        assert node.pipeline is not None
        if node.kind == "print":
            value = self._value(node.pipeline, dot)
            if not node.pipeline.variables:
                self._emit("<no value>" if value is _MISSING else shown(value), node.line)
            return
        mark = len(self._variables)
        if node.kind == "range":
            self._range(node, dot)
        else:
            value = self._value(node.pipeline, dot)
            if value is not _MISSING and truth(value):
                self._run(node.body, value if node.kind == "with" else dot)
            else:
                self._run(node.otherwise, dot)
        del self._variables[mark:]

    def _range(self, node: Node, dot: Any) -> None:
        assert node.pipeline is not None
        names = node.pipeline.variables
        value = self._evaluate(node.pipeline, dot)
        looped = False
        for key, item in _items(value, node.line):
            looped = True
            self._step(node.line)
            mark = len(self._variables)
            self._variables += zip(names, ((key, item) if len(names) == 2 else (item,)), strict=False)
            try:
                self._run(node.body, item)
            except _Break:
                break
            except _Continue:
                continue
            finally:
                del self._variables[mark:]
        if not looped:
            self._run(node.otherwise, dot)

    def _step(self, line: int) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TemplateError(line, "the template does not come to an end")

    def _emit(self, text: str, line: int) -> None:
        self._size += len(text.encode())
        if self._limit and self._size > self._limit:
            raise TemplateError(line, f"the text becomes larger than {self._limit} bytes")
        self._out.append(text)

    # -- values ----------------------------------------------------------------------------------------------------

    def _value(self, pipeline: Pipeline, dot: Any) -> Any:
        """With its variables set."""
        value = self._evaluate(pipeline, dot)
        for name in pipeline.variables:
            if pipeline.declares:
                self._variables.append((name, value))
            else:
                self._assign(name, value, pipeline.line)
        return value

    def _assign(self, name: str, value: Any, line: int) -> None:
        for i in range(len(self._variables) - 1, -1, -1):
            if self._variables[i][0] == name:
                self._variables[i] = (name, value)
                return
        raise TemplateError(line, f"undefined variable {name}")

    def _evaluate(self, pipeline: Pipeline, dot: Any) -> Any:
        value: Any = None
        for i, command in enumerate(pipeline.commands):
            value = self._command(command, dot, pipeline.line, (value,) if i else ())
        return value

    def _command(self, command: tuple[Operand, ...], dot: Any, line: int, piped: tuple[Any, ...]) -> Any:
        first = command[0]
        if first.kind != "function":
            if piped:
                raise TemplateError(line, "only a function can stand behind a '|'")
            return self._operand(first, dot, line)
        name = str(first.value)
        if name in ("and", "or"):
            return self._junction(name, command[1:], dot, line, piped)
        function = FUNCTIONS.get(name)
        if function is None:
            raise TemplateError(line, f"function {name!r} is not known here; there are {', '.join(sorted(FUNCTIONS))}")
        given = [_known(self._operand(each, dot, line)) for each in command[1:]]
        try:
            return function(*given, *map(_known, piped))
        except TypeError:
            raise TemplateError(line, f"{name} can't take these arguments") from None
        except ValueError as wrong:
            raise TemplateError(line, f"{name}: {wrong}") from None

    def _junction(self, name: str, given: tuple[Operand, ...], dot: Any, line: int, piped: tuple[Any, ...]) -> Any:
        """and, or: stop at the first argument that decides."""
        value: Any = None
        for number in range(len(given) + len(piped)):
            value = _known(self._operand(given[number], dot, line) if number < len(given) else piped[0])
            if truth(value) == (name == "or"):
                return value
        return value

    def _operand(self, operand: Operand, dot: Any, line: int) -> Any:
        if operand.kind == "literal":
            return operand.value
        if operand.kind == "nil":
            return None
        if operand.kind == "function":
            return self._command((operand,), dot, line, ())
        if operand.kind == "variable":
            start = self._variable(str(operand.value), line)
        elif operand.kind == "pipeline":
            start = self._value(operand.value, dot)
        else:
            start = dot
        return _fields(start, operand.path, line)

    def _variable(self, name: str, line: int) -> Any:
        for known, value in reversed(self._variables):
            if known == name:
                return value
        raise TemplateError(line, f"undefined variable {name}")


def _fields(value: Any, path: tuple[str, ...], line: int) -> Any:
    for i, name in enumerate(path):
        if value is _MISSING or value is None:
            shown_path = ".".join(path[: i + 1])
            raise TemplateError(line, f"nil pointer evaluating .{shown_path}: there is no .{'.'.join(path[:i])}")
        if not isinstance(value, Mapping):
            raise TemplateError(line, f"can't take field {name} of {shown(value)!r}")
        value = value.get(name, _MISSING)
    return value


def _known(value: Any) -> Any:
    return None if value is _MISSING else value


def _items(value: Any, line: int) -> Iterator[tuple[Any, Any]]:
    if value is _MISSING or value is None:
        return
    if isinstance(value, Mapping):
        yield from ((key, value[key]) for key in sorted(value))
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from ((i, i) for i in range(value))
    else:
        raise TemplateError(line, f"range can't go over {shown(value)!r}")
