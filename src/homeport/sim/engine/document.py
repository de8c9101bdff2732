"""YAML files of worlds and faults, read into types. Errors name file, line and field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import msgspec
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from homeport.machinery import yaml

T = TypeVar("T")
Place = tuple[str | int, ...]

_PATH = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_NAMED = re.compile(r"(?:unknown|required) field `([^`]+)`")


class DocumentError(ValueError):
    """A file that can't be used. The text begins with `faults.yaml:12: faults[0].match.nth: `."""


class Document:
    """The values of one file, and on which line each of them stands."""

    def __init__(self, text: str | bytes, source: str) -> None:
        self.source = source
        try:
            self.value = yaml.load(text, source)
        except yaml.YamlError as error:
            raise DocumentError(str(error)) from error
        self._lines: dict[Place, int] = {}
        root = yaml.compose(text)
        if root is not None:
            self._index(root, ())

    def _index(self, node: Node, at: Place) -> None:
        self._lines.setdefault(at, node.start_mark.line + 1)
        if isinstance(node, SequenceNode):
            for number, item in enumerate(node.value):
                self._index(item, (*at, number))
        elif isinstance(node, MappingNode):
            for key, value in node.value:
                if isinstance(key, ScalarNode):
                    self._lines[(*at, key.value)] = key.start_mark.line + 1
                    self._index(value, (*at, key.value))

    def error(self, at: Place, text: str) -> DocumentError:
        """An error at a place. If the place is not in the file, the nearest one around it is named."""
        shown = at
        while at and at not in self._lines:
            at = at[:-1]
        line = self._lines.get(at, 1)
        field = _spell(shown)
        return DocumentError(f"{self.source}:{line}: {field}: {text}" if field else f"{self.source}:{line}: {text}")

    def convert(self, type_: type[T]) -> T:
        try:
            return msgspec.convert(self.value if self.value is not None else {}, type_, strict=True)
        except msgspec.ValidationError as error:
            at, text = _parse_error(str(error))
            raise self.error(at, text) from error


def read_document(path: Path) -> Document:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{path}: can't be read ({error.strerror})") from error
    return Document(text, str(path))


def write_document(value: object) -> str:
    """YAML of any record; reading it back gives the same record."""
    return yaml.dump(msgspec.to_builtins(value))


def _parse_error(text: str) -> tuple[Place, str]:
    """The place inside the document and the rest of msgspec's message."""
    at: list[str | int] = []
    if found := _PATH.search(text):
        for name, index in _STEP.findall(found.group(1)):
            at.append(name if name else int(index) if index.isdigit() else index)
        text = text[: found.start()]
    if (named := _NAMED.search(text)) and "unknown" in named.group(0):
        at.append(named.group(1))
    if text.endswith("got `bool`"):
        text += " (quote it: YAML reads yes, no, on and off as true and false)"
    return tuple(at), text[:1].lower() + text[1:]


def _spell(at: Place) -> str:
    text = ""
    for step in at:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
