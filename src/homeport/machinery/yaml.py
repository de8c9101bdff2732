"""YAML read as kubectl reads it.

The differences from plain YAML 1.1 matter in manifests: `y` and `n` are booleans, dates and `12:34:56` stay strings,
`0o755` is octal, `1e3` is a number, keys become strings, a key given twice is refused, and so is a document whose
aliases would unfold into millions of nodes.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import yaml
from yaml.events import AliasEvent, DocumentStartEvent, Event, MappingStartEvent, ScalarEvent, StreamEndEvent
from yaml.nodes import Node

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TAG: Final = "tag:yaml.org,2002:"
_PLAIN: Final = "plain"  # a scalar without quotes and tag: its text decides what it is
_MERGE: Final = f"{_TAG}merge"

_LARGEST_UNFOLDED: Final = 400_000
_UNFOLDING: Final = 10

_WORDS: Final[dict[str, bool | None]] = {
    **{form: True for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper())},
    **{form: False for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_INFINITE: Final = re.compile(r"[+-]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DEEPEST: Final = 500
_MOST_DIGITS: Final = 300  # no float64 has more
_NUMBER_START: Final = frozenset("0123456789+-.")


class YamlError(ValueError):
    """Text that can't be read; the message begins with the place, `cluster.yaml:12: ...`."""


def compose(text: str | bytes) -> Node | None:
    """The nodes of the only document in the text, for callers that need the line of a field."""
    loader = _LOADER(text)
    try:
        node: Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def load(text: str | bytes, source: str = "") -> Any:
    """The one document in the text, as JSON values."""
    documents = list(_documents(text, source))
    if len(documents) > 1:
        raise YamlError(f"{_place(source, documents[1][0])}expected one document, found {len(documents)}")
    return documents[0][1] if documents else None


def load_first(text: str | bytes, source: str = "") -> Any:
    """The first document as Go programs read it that are not strict: the last of equal keys counts."""
    documents = _documents(text, source, strict=False)
    try:
        return next(documents, (0, None))[1]
    finally:
        documents.close()


def load_each(text: str | bytes, source: str = "") -> list[Any]:
    """All documents, read like the one of `load_first`."""
    return [document for _, document in _documents(text, source, strict=False)]


def load_all(text: str | bytes, source: str = "") -> list[dict[str, Any]]:
    """All objects in the text; empty documents are passed over."""
    objects: list[dict[str, Any]] = []
    for line, document in _documents(text, source):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise YamlError(f"{_place(source, line)}expected an object (key: value), found {_kind(document)}")
        objects.append(document)
    return objects


def dump(obj: object) -> str:
    """YAML text that kubectl reads back to the same values."""
    text: str = yaml.dump(
        obj, Dumper=_KubeDumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=4096
    )
    return text


def plain_value(text: str) -> Any:
    """What a scalar without quotes means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INFINITE.fullmatch(text):
        raise ValueError(f"{text} has no place in JSON")
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        return _float(digits)
    return text


def _integer(digits: str) -> int | float:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number with {len(digits)} digits is too large")
    body = digits.lstrip("+-").lower()
    if body[:2] in ("0x", "0b", "0o"):
        value = int(body, 0)
    elif len(body) > 1 and body[0] == "0":
        value = int(body, 8)
    else:
        value = int(body)
    value = -value if digits[0] == "-" else value
    # JSON numbers beyond 64 bits are floats to every Go program.
    return value if -(2**63) <= value < 2**63 else float(value)


def _float(digits: str) -> int | float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large a number")
    # Go writes 1000.0 as 1000, which readers take for an integer.
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _documents(text: str | bytes, source: str, *, strict: bool = True) -> Generator[tuple[int, Any], None, None]:
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise YamlError(
                f"{_place(source, 0)}the text is not UTF-8: {error.reason} at byte {error.start}"
            ) from error
    try:
        loader = _LOADER(text)
    except yaml.YAMLError as error:  # characters that YAML forbids
        raise _worded(error, source) from error
    try:
        while not isinstance(event := loader.get_event(), StreamEndEvent):
            if isinstance(event, DocumentStartEvent):
                yield _Reader(source, strict).read(loader.get_event)
    except yaml.YAMLError as error:
        raise _worded(error, source) from error
    except RecursionError as error:
        raise YamlError(f"{_place(source, 0)}the document is nested too deeply") from error
    finally:
        loader.dispose()


def _worded(error: yaml.YAMLError, source: str) -> YamlError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    context = getattr(error, "context", None)
    return YamlError(f"{_place(source, mark.line + 1 if mark else 0)}{problem}{f' ({context})' if context else ''}")


def _place(source: str, line: int) -> str:
    if source:
        return f"{source}:{line}: " if line else f"{source}: "
    return f"line {line}: " if line else ""


def _kind(value: Any) -> str:
    return {list: "a list", str: "a string", bool: "a boolean"}.get(type(value), "a number")


class _Open:
    """A list or an object that is being read. `before` counts the nodes that were read before it."""

    __slots__ = ("anchor", "before", "key", "line", "merged", "value")

    def __init__(self, value: dict[str, Any] | list[Any], event: Any, line: int, before: int) -> None:
        self.value = value
        self.anchor: str | None = event.anchor
        self.line = line
        self.before = before
        self.key: str | None = None
        self.merged: dict[str, Any] = {}

    @property
    def result(self) -> Any:
        return {**self.merged, **self.value} if self.merged and isinstance(self.value, dict) else self.value


class _Reader:
    """Turns the events of one document into JSON values; every alias gets its own copy.

    There is no tree of nodes in between: it would take a hundred times the memory of the text.
    """

    def __init__(self, source: str, strict: bool) -> None:
        self._source = source
        self._strict = strict
        self._anchors: dict[str, tuple[Any, int] | None] = {}  # value and number of nodes; None: not read to its end
        self._written = 0
        self._unfolded = 0

    def read(self, next_event: Callable[[], Event]) -> tuple[int, Any]:
        """The line that the document begins in, and its value."""
        opened: list[_Open] = []
        first = 0
        while True:
            event: Any = next_event()
            line = event.start_mark.line + 1
            first = first or line
            if isinstance(event, yaml.CollectionStartEvent):
                self._open(opened, event, line)
                continue
            if isinstance(event, yaml.CollectionEndEvent):
                done = opened.pop()
                value, anchor, line, before = done.result, done.anchor, done.line, done.before
            else:
                before = self._unfolded
                value, anchor = self._leaf(event, line)
            if anchor:
                self._anchors[anchor] = value, self._unfolded - before
            if not opened:
                return first, value
            self._add(opened[-1], value, event, line)

    def _open(self, opened: list[_Open], event: Any, line: int) -> None:
        if len(opened) >= _DEEPEST:
            raise self._error(line, "the document is nested too deeply")
        if event.anchor:
            self._anchors[event.anchor] = None
        opened.append(_Open({} if isinstance(event, MappingStartEvent) else [], event, line, self._unfolded))
        self._count(1, line)

    def _leaf(self, event: Any, line: int) -> tuple[Any, str | None]:
        if isinstance(event, AliasEvent):
            return self._alias(event, line), None
        self._count(1, line)
        return self._scalar(event, line), event.anchor

    def _alias(self, event: Any, line: int) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(line, f"found undefined alias {event.anchor!r}")
        found = self._anchors[event.anchor]
        if found is None:
            raise self._error(line, "an anchor contains itself")
        value, size = found
        self._count(size, line)
        return _copied(value)

    def _count(self, size: int, line: int) -> None:
        self._written += 1
        self._unfolded += size
        if self._unfolded > _LARGEST_UNFOLDED and self._unfolded > _UNFOLDING * self._written:
            raise self._error(line, "document contains excessive aliasing")

    def _error(self, line: int, text: object) -> YamlError:
        return YamlError(f"{_place(self._source, line)}{text}")

    # -- scalars -----------------------------------------------------------------------------------------------

    def _scalar(self, event: Any, line: int) -> Any:
        tag, text = _tag(event), event.value
        if tag == f"{_TAG}str" or not tag.startswith((_PLAIN, _TAG)):
            return text
        try:
            if tag == _PLAIN:
                return plain_value(text)
            return self._tagged(tag.removeprefix(_TAG), text)
        except (ValueError, binascii.Error) as error:
            raise self._error(line, error) from error

    def _tagged(self, tag: str, text: str) -> Any:
        if tag == "binary":
            return base64.b64decode(text).decode()
        if tag not in ("int", "float", "bool", "null"):
            return text
        value = plain_value(text)
        wanted = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}[tag]
        if not isinstance(value, wanted) or (isinstance(value, bool) and tag != "bool"):  # type: ignore[arg-type]
            raise ValueError(f"cannot decode {text!r} as a !!{tag}")
        return value

    # -- lists and objects -------------------------------------------------------------------------------------

    def _add(self, to: _Open, value: Any, event: Any, line: int) -> None:
        if isinstance(to.value, list):
            to.value.append(value)
        elif to.key is None:
            to.key = self._key(value, event, line)
            if self._strict and to.key in to.value:
                raise self._error(line, f'key "{to.key}" already set in map')
        elif to.key is _MERGE:  # a key of that very text would be another string
            for other in self._merges(value, line):
                to.merged = {**other, **to.merged}
            to.key = None
        else:
            to.value[to.key] = value
            to.key = None

    def _merges(self, value: Any, line: int) -> Iterator[dict[str, Any]]:
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, dict):
                raise self._error(line, "map merge requires map or sequence of maps as the value")
            yield each

    def _key(self, key: Any, event: Any, line: int) -> str:
        if key == "<<" and isinstance(event, ScalarEvent) and _tag(event) in (_PLAIN, _MERGE):
            return _MERGE
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if key is None or isinstance(key, (dict, list)):
            raise self._error(line, "a key must be a string, a number or a boolean")
        return str(key)


def _tag(event: Any) -> str:
    if event.tag is None or event.tag == "!":
        return _PLAIN if event.implicit[0] else f"{_TAG}str"
    return str(event.tag)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


class _KubeDumper(_DUMPER):  # type: ignore[misc]
    """Quotes exactly what would be read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    if "\n" in text and not re.search(r"[ \t]\n|[^\n\t -~\x85\xa0-\ud7ff\ue000-\ufffd]", text):
        return dumper.represent_scalar(f"{_TAG}str", text, style="|")
    try:
        ambiguous = not isinstance(plain_value(text), str)
    except ValueError:
        ambiguous = True
    return dumper.represent_scalar(f"{_TAG}str", text, style="'" if ambiguous else None)


_KubeDumper.add_representer(str, _represent_text)
