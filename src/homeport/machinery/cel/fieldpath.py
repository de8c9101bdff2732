"""Field paths as Kubernetes writes them, and the `fieldPath` of a rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from homeport.machinery.cel.parse.lexer import SIMPLE_ESCAPES

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {mark: SIMPLE_ESCAPES[mark] for mark in "abfnrtv'\\"}


class Path:
    """A place in an object. Built on the way down, written out only when something is wrong there."""

    __slots__ = ("_parent", "_step")

    def __init__(self, parent: Path | None = None, step: str = "") -> None:
        self._parent = parent
        self._step = step

    def child(self, name: str) -> Path:
        return Path(self, f".{name}")

    def key(self, name: object) -> Path:
        return Path(self, f"[{name}]")

    def __str__(self) -> str:
        steps: list[str] = []
        path: Path | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        return "".join(reversed(steps)).removeprefix(".")


class BadPath(ValueError):
    """A `fieldPath` that leads nowhere."""


def resolve(field_path: str, schema: Mapping[str, Any]) -> str:
    """A rule's `.a['b'].c` as it is appended to the path of the object; raises BadPath."""
    tokens = _TOKEN.findall(field_path)
    if "".join(tokens) != field_path:
        raise BadPath(f"invalid path {field_path}")
    path = Path()
    position = 0
    while position < len(tokens):
        if tokens[position] == "." and position + 1 < len(tokens):
            name, position = tokens[position + 1], position + 2
        elif tokens[position] == "[" and position + 2 < len(tokens) and tokens[position + 2] == "]":
            name, position = _unquote(tokens[position + 1]), position + 3
        else:
            raise BadPath(f"expected [ or . but got: {tokens[position]}")
        path, schema = _step(path, schema, name)
    return str(path)


def _unquote(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise BadPath(f"expected single quoted string but got {token}")

    def plain(found: re.Match[str]) -> str:
        if found.group(1) not in _ESCAPES:
            raise BadPath(f"invalid escape char {found.group()}")
        return _ESCAPES[found.group(1)]

    return _ESCAPE.sub(plain, token[1:-1])


def _step(path: Path, schema: Mapping[str, Any], name: str) -> tuple[Path, Mapping[str, Any]]:
    properties = schema.get("properties")
    if properties is not None:
        if name not in properties:
            raise BadPath("does not refer to a valid field")
        return path.child(name), properties[name]
    values = schema.get("additionalProperties")
    if not isinstance(values, Mapping):
        raise BadPath("does not refer to a valid field")
    return path.key(name), values
