"""What names and label keys may look like; each check gives the list of what is wrong, in the API server's words."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_key = re.compile(_KEY).fullmatch


def _longer(text: str, limit: int, unit: str = "characters") -> list[str]:
    """Names are limited in characters and labels in bytes, the words say; what is counted is bytes."""
    return [f"must be no more than {limit} {unit}"] if len(text.encode()) > limit else []


def _rule(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def dns_label(text: str) -> list[str]:
    wrong = _longer(text, 63)
    if not _is_label(text):
        if _is_subdomain(text):
            wrong.append("must not contain dots")
        else:
            rule = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                "and must start and end with an alphanumeric character"
            )
            wrong.append(_rule(rule, _LABEL, "my-name", "123-abc"))
    return wrong


def dns_subdomain(text: str, unit: str = "characters") -> list[str]:
    wrong = _longer(text, 253, unit)
    if not _is_subdomain(text):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        wrong.append(_rule(rule, _SUBDOMAIN, "example.com"))
    return wrong


def dns_label_1035(text: str) -> list[str]:
    wrong = _longer(text, 63)
    if not _is_label_1035(text):
        rule = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        wrong.append(_rule(rule, _LABEL_1035, "my-name", "abc-123"))
    return wrong


_KEY_RULE: Final = _rule(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _KEY,
    "MyName",
    "my.name",
    "123-abc",
)


def label_key(text: str) -> list[str]:
    """A name of at most 63 bytes, with an optional DNS prefix and a slash before it."""
    *prefixes, name = text.split("/")
    if len(prefixes) > 1:
        return [
            f"a valid label key {_KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    wrong: list[str] = []
    if prefixes == [""]:
        wrong.append("prefix part must be non-empty")
    elif prefixes:
        wrong += [f"prefix part {each}" for each in dns_subdomain(prefixes[0], "bytes")]
    if not name:
        wrong.append("name part must be non-empty")
    else:
        wrong += [f"name part {each}" for each in _longer(name, 63, "bytes")]
    if not _is_key(name):
        wrong.append(f"name part {_KEY_RULE}")
    return wrong


def label_value(text: str) -> list[str]:
    wrong = _longer(text, 63, "bytes")
    if text and not _is_key(text):
        rule = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        wrong.append(_rule(rule, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return wrong


def path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{bad}'" for bad in ("/", "%") if bad in text]
