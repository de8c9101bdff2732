"""Upper and lower case, one character for one: ß stays ß."""

from __future__ import annotations

import unicodedata
from typing import Final

from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.value import octets

_CONNECTOR, _PUNCTUATION, _UPPER, _LETTERS, _DIGITS, _OTHER = (
    "connector",
    "punctuation",
    "upper",
    "letters",
    "digits",
    "other",
)


def upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join(map(_upper, text))


def lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def _upper(c: str) -> str:
    made = c.upper()
    return made if len(made) == 1 else c


def _lower(c: str) -> str:
    made = c.lower()
    return made if len(made) == 1 else "i" if c == "İ" else c


def _title(c: str) -> str:
    made = c.title()
    return made if len(made) == 1 else c


def _is_upper(c: str) -> bool:
    return unicodedata.category(c) == "Lu"


def _is_space(c: str) -> bool:
    return c in "\t\n\v\f\r \x85 " or unicodedata.category(c) in ("Zs", "Zl", "Zp")


def title(text: str) -> str:
    """Each first letter of a word."""
    made: list[str] = []
    before = " "
    for c in text:
        made.append(_title(c) if _separates(before) else c)
        before = c
    return "".join(made)


def _separates(c: str) -> bool:
    if c.isascii():
        return not (c.isalnum() or c == "_")
    return not c.isalpha() and not c.isdecimal() and _is_space(c)


def untitle(text: str) -> str:
    made: list[str] = []
    begins = True
    for c in text:
        made.append(_lower(c) if begins and not _is_space(c) else c)
        begins = _is_space(c)
    return "".join(made)


def swap(text: str) -> str:
    made: list[str] = []
    begins = True
    for c in text:
        category = unicodedata.category(c)
        if category in ("Lu", "Lt"):
            made.append(_lower(c))
            begins = False
        elif category == "Ll":
            made.append(_title(c) if begins else _upper(c))
            begins = False
        else:
            made.append(c)
            begins = _is_space(c)
    return "".join(made)


def initials(text: str) -> str:
    """Byte by byte, as sprig does it: of other letters than ASCII the first byte is taken."""
    made: list[str] = []
    gap = True
    for c in octets(text).decode("latin-1"):
        if _is_space(c):
            gap = True
        elif gap:
            made.append(c)
            gap = False
    return "".join(made)


def pascal(text: str) -> str:
    """snake_case to PascalCase; connectors at both ends and of a run all but one stay."""
    start = 0
    while start < len(text) and _connects(text[start]):
        start += 1
    lead, body = text[:start], text[start:]
    if not body:
        return lead + lead[-1:]  # sprig writes the last one twice
    made: list[str] = []
    current, capitals = _upper(body[0]), _is_upper(body[0])
    for c in body[1:]:
        before, current = current, c
        if _connects(c) and _connects(before):
            made.append(before)
            continue
        if _connects(before):
            capitals = _is_upper(c)
            current = _upper(c)
            continue
        if capitals:
            if _is_upper(c):
                current = _lower(c)
            else:
                capitals = False
        made.append(before)
    return lead + "".join(made) + current


def _connects(c: str) -> bool:
    return c in "-_" or _is_space(c)


def parted(text: str, connector: str) -> str:
    """CamelCase to camel_case: words are runs of letters of one kind, and digits belong to the word before them."""
    words = _words(text)
    made: list[str] = []
    position = 0
    while position < len(words):
        kind, word = words[position]
        position += 1
        if position == len(words):
            made.append(_lowered(kind, word, connector))
            break
        following = words[position][0]
        made.append(_lowered(kind, word, connector))
        if kind == _DIGITS:
            position = _trail(words, position, made, connector)
        elif kind in (_CONNECTOR, _PUNCTUATION):
            continue
        elif following != _DIGITS:
            if following not in (_CONNECTOR, _PUNCTUATION):
                made.append(connector)
        elif position + 1 < len(words):
            digits = words[position][1]
            if words[position + 1][0] != _LETTERS:
                made.append(digits)
                position += 1
                if words[position][0] not in (_CONNECTOR, _PUNCTUATION):
                    made.append(connector)
            else:
                made += [connector, digits]
                position = _trail(words, position + 1, made, connector)
    return "".join(made)


def _trail(words: list[tuple[str, str]], position: int, made: list[str], connector: str) -> int:
    """Small letters and digits that follow digits belong to them."""
    while position < len(words) and words[position][0] in (_LETTERS, _DIGITS):
        made.append(_lowered(*words[position], connector))
        position += 1
    if position < len(words) and words[position][0] not in (_CONNECTOR, _PUNCTUATION):
        made.append(connector)
    return position


def _lowered(kind: str, word: str, connector: str) -> str:
    if kind == _CONNECTOR:
        return connector * len(word)
    return "".join(_lower(c) if _is_upper(c) else c for c in word) if kind == _UPPER else word


def _words(text: str) -> list[tuple[str, str]]:
    words: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        kind = _kind(text[position])
        end = position + 1
        if kind == _UPPER:
            end = _end_of_capitals(text, position)
        else:
            while end < len(text) and _goes_on(kind, text[end]):
                end += 1
        words.append((kind, text[position:end]))
        position = end
    return words


def _goes_on(kind: str, c: str) -> bool:
    """- and _ connect, but they are punctuation as well where it has begun."""
    if kind == _PUNCTUATION:
        return unicodedata.category(c)[0] == "P"
    return _kind(c) == kind


def _end_of_capitals(text: str, position: int) -> int:
    """HTTPStatus is HTTP and Status; Status is one word."""
    end = position + 1
    while end < len(text) and _kind(text[end]) == _UPPER:
        end += 1
    follows = end < len(text) and _kind(text[end]) == _LETTERS
    if end > position + 1:
        return end - 1 if follows else end
    while end < len(text) and _kind(text[end]) == _LETTERS:
        end += 1
    return end


def _kind(c: str) -> str:
    if _connects(c):
        return _CONNECTOR
    category = unicodedata.category(c)
    if category[0] == "P":
        return _PUNCTUATION
    if category == "Lu":
        return _UPPER
    if category[0] == "L" and not ("\u3400" <= c <= "\u4d85" or "\u4e00" <= c <= "\u9fcc" or c > "\uffff"):
        return _LETTERS
    return _DIGITS if category[0] == "N" else _OTHER


FUNCTIONS: Final = functions(
    {
        "upper": ("string", upper),
        "lower": ("string", lower),
        "title": ("string", title),
        "untitle": ("string", untitle),
        "swapcase": ("string", swap),
        "initials": ("string", initials),
        "camelcase": ("string", pascal),
        "snakecase": ("string", lambda text: parted(text, "_")),
        "kebabcase": ("string", lambda text: parted(text, "-")),
    }
)
