"""Regular expressions: RE2, as Go has them, whose time is linear in the text whatever the pattern."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, Final

import re2

from homeport.machinery.gotemplate import value as go
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.sprig.text import fits
from homeport.machinery.gotemplate.value import NilStrings, Strings, octets

_LONGEST: Final = 10_000
_INSIDE: Final = frozenset(bytes([code]) for code in range(0x80, 0xC0))  # bytes that don't begin a character
_REFERENCE: Final = re.compile(rb"\$(?:\$|\{([A-Za-z0-9_]+)\}|([A-Za-z0-9_]+))")


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # the error is raised; it need not be on stderr as well
    return options


_OPTIONS: Final = _options()


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _LONGEST:
        raise CallError(f"the expression is longer than {_LONGEST} characters")
    try:
        return re2.compile(octets(pattern), _OPTIONS)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        raise CallError(f"{pattern!r} is not a valid regular expression: {text}") from None


def _found(pattern: str, raw: bytes, limit: int = -1) -> Iterator[Any]:
    """Skips empty matches directly after another match, and those inside of a character."""
    last = -1
    count = 0
    for match in _compiled(pattern).finditer(raw):
        start = match.start()
        if start == match.end() and (start == last or raw[start : start + 1] in _INSIDE):
            continue
        if 0 <= limit <= count:
            return
        last = match.end()
        count += 1
        yield match


def matches(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(octets(text)) is not None


def matches_or_not(pattern: str, text: str) -> bool:
    """False if the pattern is not a valid expression."""
    try:
        return matches(pattern, text)
    except CallError:
        return False


def find(pattern: str, text: str) -> str:
    match = _compiled(pattern).search(octets(text))
    return "" if match is None else go.text_of(match.group())


def find_all(pattern: str, text: str, limit: int) -> Strings:
    found = [go.text_of(match.group()) for match in _found(pattern, octets(text), limit)]
    return Strings(found) if found else NilStrings()


def replace(pattern: str, text: str, new: str) -> str:
    """`new` refers to groups with $1 and ${name}."""
    raw, form = octets(text), octets(new)
    return _replaced(pattern, raw, lambda match: _expanded(form, match))


def replace_literally(pattern: str, text: str, new: str) -> str:
    made = octets(new)
    return _replaced(pattern, octets(text), lambda _: made)


def _replaced(pattern: str, raw: bytes, made: Any) -> str:
    parts: list[bytes] = []
    last = size = 0
    for match in _found(pattern, raw):
        parts += [raw[last : match.start()], made(match)]
        last = match.end()
        size += len(parts[-1])
        fits(size)
    return go.text_of(b"".join(parts) + raw[last:])


def _expanded(form: bytes, match: Any) -> bytes:
    def group(found: re.Match[bytes]) -> bytes:
        name = found[1] or found[2]
        if name is None:
            return b"$"
        if name.isdigit():
            number = int(name[:9])
            return (match.group(number) or b"") if number <= match.re.groups else b""
        number = match.re.groupindex.get(name.decode(), match.re.groupindex.get(name))
        return b"" if number is None else (match.group(number) or b"")

    return _REFERENCE.sub(group, form)


def split(pattern: str, text: str, limit: int) -> Strings:
    _compiled(pattern)
    if limit == 0:
        return NilStrings()
    raw = octets(text)
    if pattern and not raw:
        return Strings([""])
    parts: list[bytes] = []
    begin = end = 0
    for match in _found(pattern, raw, limit):
        if limit > 0 and len(parts) == limit - 1:
            break
        end = match.start()
        if match.end() != 0:
            parts.append(raw[begin:end])
        begin = match.end()
    if end != len(raw):
        parts.append(raw[begin:])
    return Strings([go.text_of(part) for part in parts])


def quoted(text: str) -> str:
    return re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", text)


FUNCTIONS: Final = functions(
    {
        "regexMatch": ("string string", matches_or_not),
        "mustRegexMatch": ("string string", matches),
        "regexFindAll": ("string string int", find_all),
        "mustRegexFindAll": ("string string int", find_all),
        "regexFind": ("string string", find),
        "mustRegexFind": ("string string", find),
        "regexReplaceAll": ("string string string", replace),
        "mustRegexReplaceAll": ("string string string", replace),
        "regexReplaceAllLiteral": ("string string string", replace_literally),
        "mustRegexReplaceAllLiteral": ("string string string", replace_literally),
        "regexSplit": ("string string int", split),
        "mustRegexSplit": ("string string int", split),
        "regexQuoteMeta": ("string", quoted),
    }
)
