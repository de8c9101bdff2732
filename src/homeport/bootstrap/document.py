"""YAML for text that a template engine reads first.

cloud-init runs Jinja over the whole document before it reads the YAML, so an expression that a user put into a value
must stand in the document as it was written: escaped quotes inside of it would be a syntax error. Text with quotes or
line breaks therefore goes into literal blocks, which know no escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_INDENT = "  "
_BARE_KEY = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# What a literal block can hold unchanged: a reader would turn other line breaks into \n.
_LITERAL = re.compile("[\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]+")


def dump_yaml(value: object) -> str:
    return "\n".join(_block(value, 0)) + "\n"


def _block(value: Any, depth: int) -> Iterator[str]:
    """The lines of a mapping or list in block style; scalars have one line."""
    if isinstance(value, Mapping) and value:
        yield from _mapping(value, depth)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        yield from _sequence(value, depth)
    else:
        yield from _scalar(value, depth)


def _mapping(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    pad = _INDENT * depth
    for key, item in value.items():
        name = key if _BARE_KEY.fullmatch(key) and key.lower() not in _WORDS else _quoted(key)
        if _is_nested(item):
            yield f"{pad}{name}:"
            yield from _block(item, depth + 1)
        else:
            first, *rest = _scalar(item, depth)
            yield f"{pad}{name}: {first}"
            yield from rest


def _sequence(value: Sequence[Any], depth: int) -> Iterator[str]:
    pad = _INDENT * depth
    for item in value:
        lines = _block(item, depth + 1) if _is_nested(item) else _scalar(item, depth)
        first, *rest = lines
        yield f"{pad}- {first.lstrip(' ')}"
        yield from rest


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _scalar(value: Any, depth: int) -> list[str]:
    """The first line goes behind the key or dash, the others are complete. `depth` is that of the key or dash."""
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float):
        return [repr(value)]
    if isinstance(value, Mapping):
        return ["{}"]
    if not isinstance(value, str):
        return ["[]"]
    if _wants_literal(value):
        return _literal(value, depth)
    return [_quoted(value)]


def _wants_literal(text: str) -> bool:
    return any(mark in text for mark in '\n"\\') and bool(_LITERAL.fullmatch(text)) and bool(text.strip())


def _literal(text: str, depth: int) -> list[str]:
    body = text.rstrip("\n")
    trailing = len(text) - len(body)
    chomp = "-" if trailing == 0 else "" if trailing == 1 else "+"
    # Without a number the first line that is not empty says how far the block is indented.
    spaces = str(len(_INDENT)) if text[0] in " \n" else ""
    pad = _INDENT * (depth + 1)
    lines = [pad + line if line else "" for line in body.split("\n")]
    return [f"|{spaces}{chomp}", *lines, *[""] * (trailing - 1)]


def _quoted(text: str) -> str:
    """Double quotes; characters outside of the basic plane stay, because YAML knows no surrogate pairs."""
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else _escaped(each) for each in shown)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
