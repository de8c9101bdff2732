"""How property names of a schema are spelled as identifiers of an expression."""

from __future__ import annotations

import re
from typing import Final

_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SPECIAL: Final = re.compile(r"__|[-./]")
_VALID: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
_ESCAPED: Final = re.compile(r"__([^_]+)__")
_WORDS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_BACK: Final = {word[2:-2]: raw for raw, word in _WORDS.items()}


def escape(name: str) -> str | None:
    """The identifier for a property, or None when the property can't be reached from an expression."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _VALID.match(name):
        return None
    return _SPECIAL.sub(lambda found: _WORDS[found.group()], name)


def unescape(identifier: str) -> str | None:
    """The property an identifier stands for, or None for an unknown escape."""
    if "__" not in identifier:
        return identifier
    valid = True

    def plain(found: re.Match[str]) -> str:
        nonlocal valid
        word = found.group(1)
        if word in _BACK:
            return _BACK[word]
        valid = valid and word in _RESERVED and found.group() == identifier
        return word

    name = _ESCAPED.sub(plain, identifier)
    return name if valid else None


def is_reserved(name: str) -> bool:
    return name in _RESERVED
