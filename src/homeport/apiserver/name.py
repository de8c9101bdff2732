"""What names, labels and annotations may look like, with the API server's own wording of what is wrong."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_label = re.compile(_LABEL).fullmatch
_subdomain = re.compile(_SUBDOMAIN).fullmatch
_label_1035 = re.compile(_LABEL_1035).fullmatch
_qualified = re.compile(_QUALIFIED).fullmatch


def dns_subdomain(name: str) -> str | None:
    if len(name) > 253:
        return "must be no more than 253 bytes"
    if _subdomain(name):
        return None
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
    )


def dns_label(name: str) -> str | None:
    if len(name) > 63:
        return "must be no more than 63 bytes"
    if _label(name):
        return None
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
    )


def dns_label_1035(name: str) -> str | None:
    if len(name) > 63:
        return "must be no more than 63 bytes"
    if _label_1035(name):
        return None
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
        f"validation is '{_LABEL_1035}')"
    )


def path_segment(name: str) -> str | None:
    if name in (".", ".."):
        return f"may not be '{name}'"
    for bad in ("/", "%"):
        if bad in name:
            return f"may not contain '{bad}'"
    return None


def label_key(key: str) -> str | None:
    """A qualified name: optional DNS prefix, then a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        wrong = dns_subdomain(prefix)
        if wrong:
            return f"prefix part {wrong}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    if _qualified(name):
        return None
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        f"'{_QUALIFIED}')"
    )


def label_value(value: str) -> str | None:
    if len(value) > 63:
        return "must be no more than 63 bytes"
    if not value or _qualified(value):
        return None
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        f"validation is '(({_QUALIFIED.replace(')?', ')?', 1)})?')"
    )
