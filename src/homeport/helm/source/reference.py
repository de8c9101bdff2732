"""Where a chart is: an OCI reference, a chart of an HTTP repository, or a path on disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from homeport.helm.errors import SourceError

_OCI: Final = re.compile(
    r"oci://(?P<host>[A-Za-z0-9.-]+(?::[0-9]+)?|\[[0-9a-fA-F:]+\](?::[0-9]+)?)/"
    r"(?P<path>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True)
class OciReference:
    """`oci://host/path:tag@digest`; without a tag, the version chooses one."""

    host: str
    path: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"oci://{self.host}/{self.path}{tag}{digest}"


@dataclass(frozen=True, slots=True)
class ChartLocation:
    """What a user writes. Exactly one of `oci`, `repository` (with `chart`) and `path` is set.

    `version` is a version or a range such as `1.18.x`; empty: the newest release. `digest` pins the archive.
    `path` is a folder or an archive; with `chart`, a folder of archives in which the version is chosen.
    """

    oci: str = ""
    repository: str = ""
    path: str = ""
    chart: str = ""
    version: str = ""
    digest: str = ""

    def __str__(self) -> str:
        where = self.oci or self.repository or self.path
        chart = f" chart {self.chart}" if self.chart else ""
        version = f" version {self.version}" if self.version else ""
        return f"{without_user(where)}{chart}{version}"


def parse_oci(text: str) -> OciReference:
    found = _OCI.fullmatch(text)
    if found is None:
        raise SourceError(
            f"invalid OCI reference {without_user(text)!r}: expected for example oci://registry.example.com/charts/cilium:1.18.2"
        )
    return OciReference(found["host"], found["path"], found["tag"] or "", found["digest"] or "")


def mirrored(location: ChartLocation, mirrors: Mapping[str, str]) -> ChartLocation:
    """The location with the longest prefix that a mirror is named for replaced. A mirror may be of another kind.

    `{"oci://registry.example.com/charts": "oci://mirror.local/charts", "https://charts.example.com": "/srv/charts"}`
    """
    source = location.oci or location.repository
    found = [prefix for prefix in mirrors if _begins_with(source, prefix.rstrip("/"))]
    if not source or not found:
        return location
    prefix = max(found, key=len)
    moved = mirrors[prefix].rstrip("/") + source[len(prefix.rstrip("/")) :].rstrip("/")
    return _at(location, moved)


def _begins_with(source: str, prefix: str) -> bool:
    return source == prefix or source.startswith((f"{prefix}/", f"{prefix}:", f"{prefix}@"))


def _at(location: ChartLocation, moved: str) -> ChartLocation:
    name = location.chart
    version = location.version
    if location.oci and not moved.startswith("oci://"):
        reference = parse_oci(location.oci)
        name, version = reference.path.rsplit("/", 1)[-1], reference.tag or version
        moved = moved.split("@")[0].removesuffix(f":{reference.tag}" if reference.tag else "").rsplit("/", 1)[0]
    if moved.startswith("oci://"):
        oci = f"{moved}/{name}" if location.repository else moved
        return replace(location, oci=oci, repository="", chart="")
    if moved.startswith(("https://", "http://")):
        return replace(location, oci="", repository=moved, chart=name, version=version)
    return replace(location, oci="", repository="", path=moved, chart=name, version=version)


def without_user(url: str) -> str:
    """An address may carry a password: messages never show it."""
    if "@" not in url or "://" not in url:
        return url
    scheme, rest = url.split("://", 1)
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rsplit('@', 1)[-1]}{slash}{path}"


def host_of(url: str) -> str:
    """Host and port, for comparing whom a request goes to."""
    parts = urlsplit(url)
    try:
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        raise SourceError(f"{without_user(url)} is not a valid address: its port is not a number") from None
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"
