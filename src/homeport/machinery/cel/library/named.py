"""Named formats: `format.dns1123Label().validate(...)`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.library import url
from homeport.machinery.cel.library.registry import Function, function, method
from homeport.machinery.cel.values import NONE, Optional

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})\Z", re.ASCII)
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))\Z")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z", re.IGNORECASE)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})\Z")

# The wording is part of the function's result: rules compare with it and users look it up.
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def _explain(rule: str, pattern: str, *examples: str) -> str:
    quoted = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {quoted}regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _length(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def label(text: str) -> list[str]:
    problems = [_too_long(63)] if _length(text) > 63 else []
    if not _matches(_LABEL, text):
        dotted = _matches(_SUBDOMAIN, text)
        problems.append("must not contain dots" if dotted else _explain(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return problems


def subdomain(text: str) -> list[str]:
    problems = [_too_long(253)] if _length(text) > 253 else []
    if not _matches(_SUBDOMAIN, text):
        problems.append(_explain(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return problems


def label_1035(text: str) -> list[str]:
    problems = [_too_long(63)] if _length(text) > 63 else []
    if not _matches(_LABEL_1035, text):
        problems.append(_explain(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123"))
    return problems


def qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    rule = _explain(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems: list[str] = []
    if len(parts) == 2 and not parts[0]:
        problems.append("prefix part must be non-empty")
    elif len(parts) == 2:
        problems += [f"prefix part {each}" for each in subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif _length(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _matches(_KEY, name):
        problems.append(f"name part {rule}")
    return problems


def label_value(text: str) -> list[str]:
    problems = ["must be no more than 63 bytes"] if _length(text) > 63 else []
    if not _matches(_VALUE, text):
        problems.append(_explain(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def is_date(text: str) -> bool:
    match = _DATE.match(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= lengths[month - 1]


def is_datetime(text: str) -> bool:
    day, _, clock = text.lower().partition("t")
    match = _TIME.match(clock.partition("t")[0])
    return is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _masked(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """For a prefix a trailing dash is fine: something follows it."""
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _simple(check: Callable[[str], bool], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if check(text) else [problem]


class NamedFormat:
    __slots__ = ("check", "name", "pattern_size")
    cel_type: Final = t.NAMED_FORMAT

    def __init__(self, name: str, check: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.check = check
        self.pattern_size = pattern_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def validate(self, text: str) -> Optional:
        problems = self.check(text)
        return Optional(problems) if problems else NONE


# the sizes are those of the patterns that costs are reckoned by
FORMATS: Final[dict[str, NamedFormat]] = {
    name: NamedFormat(name, check, size)
    for name, check, size in (
        ("dns1123Label", label, 30),
        ("dns1123Subdomain", subdomain, 60),
        ("dns1035Label", label_1035, 30),
        ("qualifiedName", qualified_name, 60),
        ("dns1123LabelPrefix", _masked(label), 30),
        ("dns1123SubdomainPrefix", _masked(subdomain), 60),
        ("dns1035LabelPrefix", _masked(label_1035), 30),
        ("labelValue", label_value, 40),
        ("uri", url.problem, 1103),
        ("uuid", _simple(lambda s: bool(_UUID.match(s)), "does not match the UUID format"), 77),
        ("byte", _simple(lambda s: bool(_BASE64.match(s)), "invalid base64"), 84),
        ("date", _simple(is_date, "invalid date"), 72),
        ("datetime", _simple(is_datetime, "invalid datetime"), 72),
    )
}


def _constant(found: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: found


def functions() -> list[Function]:
    f, maybe = t.NAMED_FORMAT, t.optional_of(t.list_of(t.STRING))
    return [
        *(function(f"format.{name}", f"format.{name}", (), f, _constant(each)) for name, each in FORMATS.items()),
        function(
            "format.named",
            "format-named",
            (t.STRING,),
            t.optional_of(f),
            lambda name: Optional(FORMATS[name]) if name in FORMATS else NONE,
        ),
        method("validate", "format-validate", (f, t.STRING), maybe, NamedFormat.validate),
    ]
