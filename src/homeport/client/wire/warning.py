"""Warning headers (RFC 7234): `299 - "text"`, several in one header or in several."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_ONE = re.compile(r'\s*,?\s*(\d{3}) (\S+) "((?:[^"\\]|\\.)*)"(?: "[^"]*")?')


def parse_warnings(headers: Iterable[str]) -> Iterator[str]:
    for header in headers:
        for found in _ONE.finditer(header):
            if found[1] == "299":
                yield re.sub(r"\\(.)", r"\1", found[3])
