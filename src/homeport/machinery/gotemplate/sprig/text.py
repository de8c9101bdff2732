"""Strings. Places in them are bytes, as everywhere in Go."""

from __future__ import annotations

from typing import Final

from homeport.machinery.gotemplate import value as go
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.printer import LARGEST, quoted, shown
from homeport.machinery.gotemplate.sprig.conversion import strings, text_of
from homeport.machinery.gotemplate.value import StringMap, Strings, octets

_BLANKS: Final = "\t\n\v\f\r  \x85             \u2028\u2029  　"
_LATIN_BLANKS: Final = frozenset("\t\n\v\f\r \x85 ")
_ELLIPSIS: Final = "..."


def fits(size: int) -> None:
    """Before it is made: what is too large must not be made at all."""
    if size > LARGEST:
        raise CallError(f"the text becomes longer than {LARGEST} characters")


def repeat(count: int, text: str) -> str:
    if count < 0:
        raise CallError(f"can't repeat {count} times")
    fits(count * len(text))
    return text * count


def replace(old: str, new: str, text: str) -> str:
    fits(len(text) + (text.count(old) if old else len(text) + 1) * len(new))
    return text.replace(old, new)


def indent(spaces: int, text: str) -> str:
    if spaces < 0:
        raise CallError(f"can't indent by {spaces}")
    fits(len(text) + (text.count("\n") + 1) * spaces)
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


def trunc(count: int, text: str) -> str:
    raw = octets(text)
    if count < 0:
        return go.text_of(raw[count:]) if len(raw) + count > 0 else text
    return go.text_of(raw[:count]) if len(raw) > count else text


def substring(start: int, end: int, text: str) -> str:
    raw = octets(text)
    first, last = (0, end) if start < 0 else (start, end if 0 <= end <= len(raw) else len(raw))
    if not 0 <= first <= last <= len(raw):
        raise CallError(f"the part from {start} to {end} is outside of a text with {len(raw)} bytes")
    return go.text_of(raw[first:last])


def abbreviate(offset: int, width: int, text: str) -> str:
    raw = octets(text)
    if len(raw) <= width:
        return text
    offset = min(offset, len(raw))
    if len(raw) - offset < width - 3:
        offset = len(raw) - (width - 3)
    if offset <= 4:
        return go.text_of(raw[: width - 3]) + _ELLIPSIS
    if width < 7:
        return ""
    if offset + width - 3 < len(raw):
        return _ELLIPSIS + (abbreviate(0, width - 3, go.text_of(raw[offset:])) if width - 3 >= 4 else "")
    return _ELLIPSIS + go.text_of(raw[len(raw) - (width - 3) :])


def abbreviate_both(left: int, right: int, text: str) -> str:
    if right < 4 or (left > 0 and right < 7):
        return text
    return abbreviate(left, right, text)


def without_blanks(text: str) -> str:
    """Byte by byte, as sprig does it: other letters than ASCII don't survive where there is a blank."""
    latin = octets(text).decode("latin-1")
    kept = "".join(c for c in latin if c not in _LATIN_BLANKS)
    return text if len(kept) == len(latin) else kept


def wrap(length: int, text: str, separator: str = "\n", *, long_words: bool = False) -> str:
    if not text:
        return ""
    separator = separator or "\n"
    length = max(length, 1)
    raw, mark = octets(text), octets(separator)
    fits(len(raw) + (len(raw) // length + 1) * len(mark))
    parts: list[bytes] = []
    offset = 0
    while len(raw) - offset > length:
        if raw[offset : offset + 1] == b" ":
            offset += 1
            continue
        blank = raw.rfind(b" ", offset, offset + length + 1)
        if blank >= offset:
            parts += [raw[offset:blank], mark]
            offset = blank + 1
        elif long_words:
            parts += [raw[offset : offset + length], mark]
            offset += length
        else:
            blank = raw.find(b" ", offset + length)
            if blank < 0:
                parts.append(raw[offset:])
                offset = len(raw)
            else:
                parts += [raw[offset:blank], mark]
                offset = blank + 1
    return go.text_of(b"".join(parts) + raw[offset:])


def quote(*values: object) -> str:
    return " ".join(quoted(text_of(each)) for each in values if each is not None)


def single_quote(*values: object) -> str:
    return " ".join(f"'{shown(each)}'" for each in values if each is not None)


def cat(*values: object) -> str:
    return " ".join(shown(each) for each in values if each is not None)


def join(separator: str, value: object) -> str:
    parts = strings(value)
    fits(sum(map(len, parts)) + len(parts) * len(separator))
    return separator.join(parts)


def split(separator: str, text: str, limit: int = -1) -> Strings:
    """strings.SplitN: an empty separator splits into characters."""
    if limit == 0:
        return Strings()
    if not separator:
        parts = list(text)
        return Strings(
            parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
        )
    return Strings(text.split(separator, limit - 1 if limit > 0 else -1))


def split_map(separator: str, text: str, limit: int = -1) -> StringMap:
    return StringMap({f"_{i}": part for i, part in enumerate(split(separator, text, limit))})


def sort(value: object) -> Strings:
    return Strings(sorted(strings(value), key=octets)) if isinstance(value, list) else Strings([text_of(value)])


def fail(message: str) -> str:
    raise CallError(message)


FUNCTIONS: Final = functions(
    {
        "abbrev": ("int string", lambda width, text: text if width < 4 else abbreviate(0, width, text)),
        "abbrevboth": ("int int string", abbreviate_both),
        "trunc": ("int string", trunc),
        "trim": ("string", lambda text: text.strip(_BLANKS)),
        "substr": ("int int string", substring),
        "repeat": ("int string", repeat),
        "trimall": ("string string", lambda cut, text: text.strip(cut) if cut else text),
        "trimAll": ("string string", lambda cut, text: text.strip(cut) if cut else text),
        "trimSuffix": ("string string", lambda end, text: text.removesuffix(end)),
        "trimPrefix": ("string string", lambda start, text: text.removeprefix(start)),
        "nospace": ("string", without_blanks),
        "wrap": ("int string", wrap),
        "wrapWith": ("int string string", lambda size, mark, text: wrap(size, text, mark, long_words=True)),
        "contains": ("string string", lambda part, text: part in text),
        "hasPrefix": ("string string", lambda start, text: text.startswith(start)),
        "hasSuffix": ("string string", lambda end, text: text.endswith(end)),
        "quote": ("...any", quote),
        "squote": ("...any", single_quote),
        "cat": ("...any", cat),
        "indent": ("int string", indent),
        "nindent": ("int string", lambda spaces, text: "\n" + indent(spaces, text)),
        "replace": ("string string string", replace),
        "plural": ("string string int", lambda one, many, count: one if count == 1 else many),
        "toString": ("any", text_of),
        "toStrings": ("any", lambda value: Strings(strings(value))),
        "join": ("string any", join),
        "split": ("string string", split_map),
        "splitn": ("string int string", lambda mark, limit, text: split_map(mark, text, limit)),
        "splitList": ("string string", split),
        "sortAlpha": ("any", sort),
        "fail": ("string", fail),
        "hello": ("", lambda: "Hello!"),
    }
)
