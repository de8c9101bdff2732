"""JSONPath as Kubernetes reads it in printer columns, selectable fields and `kubectl -o jsonpath`.

`{.spec.replicas}`, `.status.conditions[?(@.type=="Ready")].status`, `.items[*].name`, `..image`, `['a','b']`, `[0:3]`.
The braces may be left out. What is absent gives no result; it is no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import orjson

Find = Callable[[Any], list[Any]]
_Step = Callable[[list[Any]], list[Any]]

_SIMPLE = re.compile(r"(\{)?\$?((?:\.[A-Za-z0-9_-]+)+)(?(1)\})")
_ESCAPED = re.compile(r"\\(.)")
_FIELD_END = frozenset(".,[]$@{} \t\n")
_SLICE = re.compile(r"\s*(-?[0-9]*)\s*(?::\s*(-?[0-9]*)\s*(?::\s*(-?[0-9]*)\s*)?)?")
_FILTER = re.compile(r"\s*([^!<>=]+?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?", re.DOTALL)


class PathError(ValueError):
    """A path that can't be read; the text says where and why."""


@lru_cache(maxsize=2048)
def compile_path(text: str) -> Find:
    """A function that gives all values at the path, in the object's order."""
    simple = _SIMPLE.fullmatch(text)
    if simple:
        return _follow(tuple(simple[2][1:].split(".")))
    steps = _Parser(text).steps()

    def find(obj: Any) -> list[Any]:
        values = [obj]
        for step in steps:
            values = step(values)
            if not values:
                break
        return values

    return find


def simple_path(text: str) -> tuple[str, ...]:
    """The field names of a plain path such as `.spec.replicas`."""
    names = text.removeprefix(".").split(".")
    if not text.startswith(".") or not all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names):
        raise PathError(f"{text!r} is not a plain path of field names such as .spec.replicas")
    return tuple(names)


def read(obj: object, path: str) -> Any:
    """The value at a plain path, or None."""
    for name in simple_path(path):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def write(obj: dict[str, Any], path: str, value: object) -> None:
    """Sets the value at a plain path; maps on the way are made as needed."""
    *parents, last = simple_path(path)
    for name in parents:
        below = obj.setdefault(name, {})
        if not isinstance(below, dict):
            raise PathError(f"{path}: {name} is not a map")
        obj = below
    obj[last] = value


def render(value: object) -> str:
    """A value as kubectl prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else str(value)


def _follow(names: tuple[str, ...]) -> Find:
    *parents, last = names

    def find(obj: Any) -> list[Any]:
        for name in parents:
            if obj.__class__ is not dict:
                return []
            obj = obj.get(name)
        return [obj[last]] if obj.__class__ is dict and last in obj else []

    return find


class _Parser:
    def __init__(self, text: str) -> None:
        self._whole = text
        text = text.strip()
        if text.startswith("{"):
            if not text.endswith("}") or "}{" in text:
                raise PathError(f"{text!r}: expected one path in braces")
            text = text[1:-1].strip()
        self._text = text
        self._at = 0

    def _error(self, what: str) -> PathError:
        return PathError(f"{self._whole!r}: {what} at position {self._at}")

    def steps(self) -> list[_Step]:
        steps: list[_Step] = []
        text = self._text
        while self._at < len(text):
            char = text[self._at]
            if char in "$@":
                self._at += 1
            elif char == ".":
                self._dot(steps)
            elif char == "[":
                steps.append(self._bracket())
            elif char in _FIELD_END:
                raise self._error(f"unexpected {char!r}")
            elif steps:
                raise self._error(f"unexpected {char!r}, a dot or a bracket was expected")
            else:
                steps.append(_field(self._name()))
        return steps

    def _dot(self, steps: list[_Step]) -> None:
        self._at += 1
        if self._text.startswith(".", self._at):
            self._at += 1
            steps.append(_recursive)
            if self._at == len(self._text):
                raise self._error("nothing follows '..'")
        if self._text.startswith("*", self._at):
            self._at += 1
            steps.append(_wildcard)
        elif self._at < len(self._text) and self._text[self._at] not in _FIELD_END:
            steps.append(_field(self._name()))
        elif self._at < len(self._text) and self._text[self._at] != "[":
            raise self._error("a field name was expected")

    def _name(self) -> str:
        name: list[str] = []
        text = self._text
        while self._at < len(text) and text[self._at] not in _FIELD_END:
            if text[self._at] == "\\":
                self._at += 1
                if self._at == len(text):
                    raise self._error("nothing follows the backslash")
            name.append(text[self._at])
            self._at += 1
        return "".join(name)

    def _bracket(self) -> _Step:
        end = self._closing()
        inside = self._text[self._at + 1 : end].strip()
        start = self._at
        self._at = end + 1
        if inside.startswith("?(") and inside.endswith(")"):
            return _filter(inside[2:-1], self._whole)
        parts = [self._part(part.strip(), start) for part in _split_union(inside)]
        return parts[0] if len(parts) == 1 else _union(parts)

    def _closing(self) -> int:
        """Where the bracket ends, over nested brackets and quotes."""
        depth, quote = 0, ""
        for index in range(self._at, len(self._text)):
            char = self._text[index]
            if quote:
                if char == quote and self._text[index - 1] != "\\":
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char == "[":
                depth += 1
            elif char == "]":
                depth -= 1
                if depth == 0:
                    return index
        raise self._error("unterminated array")

    def _part(self, part: str, position: int) -> _Step:
        if part == "*":
            return _wildcard
        if len(part) > 1 and part[0] in "\"'" and part[-1] == part[0]:
            return _field(_ESCAPED.sub(r"\1", part[1:-1]))  # printer columns escape the dots of labels
        found = _SLICE.fullmatch(part)
        if not part or found is None:
            self._at = position
            raise self._error(f"invalid array index {part}")
        if ":" not in part:
            return _index(int(found[1]))
        start, end, step = (int(n) if n else None for n in found.groups())
        if step is not None and step <= 0:
            raise self._error("step must be > 0")
        return _slice(slice(start, end, step))


def _split_union(text: str) -> Iterator[str]:
    quote, start = "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char == ",":
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _field(name: str) -> _Step:
    return lambda values: [v[name] for v in values if isinstance(v, dict) and name in v]


def _index(index: int) -> _Step:
    def step(values: list[Any]) -> list[Any]:
        return [v[index] for v in values if isinstance(v, list) and -len(v) <= index < len(v)]

    return step


def _slice(part: slice) -> _Step:
    return lambda values: [item for v in values if isinstance(v, list) for item in v[part]]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wildcard(values: list[Any]) -> list[Any]:
    return [item for v in values for item in _children(v)]


def _recursive(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if below := _children(value):
            found.append(value)
            found += _recursive(below)
    return found


def _union(parts: list[_Step]) -> _Step:
    return lambda values: [item for part in parts for item in part(values)]


def _filter(text: str, whole: str) -> _Step:
    found = _FILTER.fullmatch(text)
    if found is None:
        raise PathError(f"{whole!r}: can't read the filter ?({text})")
    left, operator, right = found.groups()
    lefts = _operand(left)
    if operator is None:
        return lambda values: [item for v in values if isinstance(v, list) for item in v if lefts(item)]
    rights, compare = _operand(right), _OPERATORS[operator]

    def passes(item: Any) -> bool:
        a, b = lefts(item), rights(item)
        if not a or not b:
            return False
        try:
            return compare(a[0], b[0])
        except TypeError:  # a string and a number have no order
            return False

    return lambda values: [item for v in values if isinstance(v, list) for item in v if passes(item)]


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b) and isinstance(a, bool) == isinstance(b, bool),
    "!=": lambda a, b: bool(a != b) or isinstance(a, bool) != isinstance(b, bool),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def _operand(text: str) -> Find:
    constant: Any
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        constant = text[1:-1].replace(f"\\{text[0]}", text[0])
    elif text in ("true", "false"):
        constant = text == "true"
    elif re.fullmatch(r"[+-]?[0-9]+", text):
        constant = int(text)
    elif re.fullmatch(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?", text):
        constant = float(text)
    else:
        return compile_path(text)
    return lambda item: [constant]
