"""String formats that custom resources are held to. A format that is not listed here is not checked."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from typing import Final
from urllib.parse import urlsplit

from homeport.machinery.schema.pattern import search

Check = Callable[[str], bool]


def _matching(pattern: str) -> Check:
    compiled = search(pattern)
    return lambda text: compiled(text) is not None


def is_date(text: str) -> bool:
    if len(text) != 10 or text[4] != "-" or text[7] != "-":
        return False
    year, month, day = text[:4], text[5:7], text[8:]
    if not (year + month + day).isascii() or not (year + month + day).isdigit():
        return False
    if year == "0000":  # Go's calendar has a leap year 0; Python's starts at 1.
        year = "0004"
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.DOTALL)


def is_date_time(text: str) -> bool:
    day, t, rest = text.lower().partition("t")
    found = _CLOCK.fullmatch(rest.partition("t")[0]) if t and is_date(day) else None
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


_LEADING_ZEROS: Final = re.compile(r"(^|\.)0+(?=[0-9])")


def _without_leading_zeros(text: str) -> str:
    """IPv4 addresses with leading zeros are still read, as decimal."""
    head, colon, tail = text.rpartition(":")
    return head + colon + _LEADING_ZEROS.sub(r"\1", tail) if "." in tail else text


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(_without_leading_zeros(text))
    except ValueError:
        return None


def is_ipv4(text: str) -> bool:
    return "." in text and _address(text) is not None


def is_ipv6(text: str) -> bool:
    return ":" in text and _address(text) is not None


def is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    parsed = _address(address)
    if not slash or parsed is None or not bits.isascii() or not bits.isdigit() or len(bits) > 3:
        return False
    return int(bits) <= parsed.max_prefixlen


# Lengths are checked apart: counting them makes this expression a hundred times as large, and 0.2 s to compile.
_HOSTNAME: Final = search(
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]*)?)"
    r"|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]*[a-zA-Z0-9\p{S}\p{L}])?)(\.))+([a-zA-Z\p{L}]){2,})$"
)


def is_hostname(text: str) -> bool:
    if _HOSTNAME(text) is None:
        return False
    raw = text.encode()
    return len(raw) <= 255 and all(len(label) <= 63 for label in raw.split(b"."))


_BAD_URI: Final = re.compile(r"[\x00-\x1f\x7f]|%(?![0-9a-fA-F]{2})")


def is_uri(text: str) -> bool:
    """An absolute URI or an absolute path."""
    if not text or _BAD_URI.search(text):
        return False
    if text.startswith("/") or text == "*":
        return True
    scheme, colon, _ = text.partition(":")
    if not colon or not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]*", scheme):
        return False
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return " " not in parts.netloc


def is_email(text: str) -> bool:
    _, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    return bool(local and at and domain) and " " not in domain


_MAC: Final = _matching(
    "^(?i)(?:(?:[0-9a-f]{2}:)+[0-9a-f]{2}|(?:[0-9a-f]{2}-)+[0-9a-f]{2}|(?:[0-9a-f]{4}[.])+[0-9a-f]{4})$"
)


def is_mac(text: str) -> bool:
    return _MAC(text) and sum(c in "0123456789abcdefABCDEF" for c in text) in (12, 16, 40)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    total = sum((i + 1) * int(c) for i, c in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    total = sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


_CARD: Final = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(c) * (1 + i % 2) for i, c in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


_GO_DURATION: Final = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+")
_WORDED: Final = re.compile(r"[0-9]+\s*([A-Za-zµ]+)")
_EXACT_UNITS: Final = {"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"}
_LONG_UNITS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def is_duration(text: str) -> bool:
    """`1h30m` as Go spells it, or `3 days`."""
    if text in ("0", "+0", "-0") or _GO_DURATION.fullmatch(text):
        return True
    units = (found[1].lower() for found in _WORDED.finditer(text))
    return any(unit in _EXACT_UNITS or unit.startswith(_LONG_UNITS) for unit in units)


_SHORT_NAME: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_IS_SHORT_NAME: Final = _matching(f"^{_SHORT_NAME}$")
_IS_LONG_NAME: Final = _matching(rf"^{_SHORT_NAME}(\.{_SHORT_NAME})*$")
_HEX: Final = "[0-9a-f]"
_RGB: Final = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*"

# Keys have no dashes: `date-time` and `datetime` are the same format.
FORMATS: Final[dict[str, Check]] = {
    "bsonobjectid": _matching("^[0-9a-fA-F]{24}$"),
    "uri": is_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _matching(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}$"),
    "uuid3": _matching(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}$"),
    "uuid4": _matching(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}$"),
    "uuid5": _matching(f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89ab]{_HEX}{{3}}-?{_HEX}{{12}}$"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": is_credit_card,
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None,
    "hexcolor": _matching("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "rgbcolor": _matching(rf"^rgb\({_RGB},{_RGB},{_RGB}\)$"),
    "byte": _matching("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _IS_SHORT_NAME(text),
    "k8slongname": lambda text: len(text) <= 253 and _IS_LONG_NAME(text),
}

_BY_TYPE: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def recognised(type_: str, format_: str) -> str:
    """The format if it means something for values of the type, else nothing."""
    if not format_:
        return ""
    if type_ in ("", "string"):
        return format_ if format_.replace("-", "") in FORMATS else ""
    return format_ if format_ in _BY_TYPE.get(type_, ()) else ""


def string_check(format_: str) -> Check | None:
    return FORMATS.get(format_.replace("-", ""))
