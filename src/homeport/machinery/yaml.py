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
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

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
_DEEP_LINE: Final = re.compile(rf"^[ ?-]{{{_DEEPEST}}}", re.MULTILINE)
_NUMBER_START: Final = frozenset("0123456789+-.")


class YamlError(ValueError):
    """Text that can't be read; the message begins with the place, `cluster.yaml:12: ...`."""


class KubeLoader(_LOADER):  # type: ignore[misc]
    """Composes nodes and leaves it to `_Reader` what plain scalars mean."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        if kind is ScalarNode:
            return _PLAIN if implicit[0] else f"{_TAG}str"
        return f"{_TAG}{'seq' if kind is SequenceNode else 'map'}"


def load(text: str | bytes, source: str = "") -> Any:
    """The one document in the text, as JSON values."""
    documents = list(_documents(text, source))
    if len(documents) > 1:
        raise YamlError(f"{_place(source, documents[1][0])}expected one document, found {len(documents)}")
    return documents[0][1] if documents else None


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


def dump(obj: Any) -> str:
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
    # Go writes 1000.0 as 1000, which is an integer to whoever reads it.
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _documents(text: str | bytes, source: str) -> Iterator[tuple[int, Any]]:
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise YamlError(
                f"{_place(source, 0)}the text is not UTF-8: {error.reason} at byte {error.start}"
            ) from error
    try:
        _check_depth(text, source)
        loader = KubeLoader(text)
    except yaml.YAMLError as error:  # characters that YAML forbids
        raise _worded(error, source) from error
    try:
        while loader.check_node():
            node = loader.get_node()
            yield node.start_mark.line + 1, _Reader(source).read(node)
    except yaml.YAMLError as error:
        raise _worded(error, source) from error
    except RecursionError as error:
        raise YamlError(f"{_place(source, 0)}the document is nested too deeply") from error
    finally:
        loader.dispose()


def _check_depth(text: str, source: str) -> None:
    """The compiled composer recurses on the C stack and dies of a deep document: refuse that before it sees it."""
    if text.count("[") + text.count("{") < _DEEPEST and not _DEEP_LINE.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > 2 * _DEEPEST:
                line = event.start_mark.line + 1 if event.start_mark else 0
                raise YamlError(f"{_place(source, line)}the document is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


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


class _Reader:
    """Turns the nodes of one document into JSON values; every alias gets its own copy."""

    def __init__(self, source: str) -> None:
        self._source = source

    def read(self, node: Node) -> Any:
        sizes: dict[int, int] = {}
        unfolded = _unfolded(node, sizes, self._source)
        if unfolded > _LARGEST_UNFOLDED and unfolded > _UNFOLDING * len(sizes):
            raise YamlError(f"{_place(self._source, node.start_mark.line + 1)}document contains excessive aliasing")
        return self._value(node)

    def _error(self, node: Node, text: object) -> YamlError:
        return YamlError(f"{_place(self._source, node.start_mark.line + 1)}{text}")

    def _value(self, node: Node) -> Any:
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            return [self._value(item) for item in node.value]
        assert isinstance(node, MappingNode)
        return self._mapping(node)

    def _scalar(self, node: ScalarNode) -> Any:
        tag, text = node.tag, node.value
        if tag == f"{_TAG}str" or not tag.startswith((_PLAIN, _TAG)):
            return text
        try:
            if tag == _PLAIN:
                return plain_value(text)
            return self._tagged(tag.removeprefix(_TAG), text)
        except (ValueError, binascii.Error) as error:
            raise self._error(node, error) from error

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

    def _mapping(self, node: MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if isinstance(key_node, ScalarNode) and key_node.value == "<<" and key_node.tag in (_PLAIN, _MERGE):
                for other in self._merges(value_node):
                    merged = {**other, **merged}
                continue
            key = self._key(key_node)
            if key in own:
                raise self._error(key_node, f'key "{key}" already set in map')
            own[key] = self._value(value_node)
        return {**merged, **own} if merged else own

    def _merges(self, node: Node) -> Iterator[dict[str, Any]]:
        for each in node.value if isinstance(node, SequenceNode) else [node]:
            if not isinstance(each, MappingNode):
                raise self._error(each, "map merge requires map or sequence of maps as the value")
            yield self._mapping(each)

    def _key(self, node: Node) -> str:
        key = self._scalar(node) if isinstance(node, ScalarNode) else None
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if key is None:
            raise self._error(node, "a key must be a string, a number or a boolean")
        return str(key)


def _unfolded(node: Node, sizes: dict[int, int], source: str) -> int:
    """How many nodes the document has once its aliases are copies; `sizes` gets one entry per node as written."""
    known = sizes.get(id(node))
    if known is not None:
        if known < 0:
            raise YamlError(f"{_place(source, node.start_mark.line + 1)}an anchor contains itself")
        return known
    sizes[id(node)] = -1
    total = 1
    if isinstance(node, SequenceNode):
        total += sum(_unfolded(item, sizes, source) for item in node.value)
    elif isinstance(node, MappingNode):
        total += sum(_unfolded(k, sizes, source) + _unfolded(v, sizes, source) for k, v in node.value)
    sizes[id(node)] = total
    return total


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
