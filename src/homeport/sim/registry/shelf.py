"""Charts that the stand-in offers: by repository, name and version."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from homeport.machinery.chart import Chart, load_chart
from homeport.machinery.chart.dependency import compatible
from homeport.machinery.gotemplate.sprig.semver import parse

Files = Mapping[str, bytes]


class NoSuchChart(LookupError):
    """The repository does not have it; the text says what it has."""


@dataclass(frozen=True, slots=True)
class PublishedChart:
    """`repository`: https://HOST/PATH, or oci://HOST/PATH without the name of the chart."""

    repository: str
    name: str
    version: str
    files: Callable[[], Files]

    def archive(self) -> bytes:
        return _pack(self)

    def chart(self) -> Chart:
        return load_chart(self.files())


class Shelf:
    """All published charts. A chart that is published again under the same version replaces the first."""

    def __init__(self) -> None:
        self._charts: dict[tuple[str, str, str], PublishedChart] = {}

    def publish(self, *charts: PublishedChart) -> None:
        for chart in charts:
            self._charts[_normal(chart.repository), chart.name, chart.version] = chart

    def hosts(self) -> frozenset[str]:
        return frozenset(repository.partition("://")[2].partition("/")[0] for repository, _, _ in self._charts)

    def within(self, repository: str) -> list[PublishedChart]:
        """The charts of a repository."""
        return [chart for (place, _, _), chart in self._charts.items() if place == _normal(repository)]

    def repositories(self) -> Iterator[str]:
        yield from dict.fromkeys(repository for repository, _, _ in self._charts)

    def pick(self, repository: str, name: str, version: str = "") -> PublishedChart:
        """A version, the newest within a range, or the newest of all. Raises NoSuchChart."""
        found = [chart for chart in self.within(repository) if chart.name == name]
        fitting = [chart for chart in found if chart.version == version.removeprefix("v")] or [
            chart for chart in found if compatible(version or "*", chart.version)
        ]
        if not fitting:
            known = ", ".join(sorted(chart.version for chart in found)) or "none"
            raise NoSuchChart(f'chart "{name}" version "{version}" not found in {repository} (available: {known})')
        return max(fitting, key=lambda chart: parse(chart.version).key)


def _normal(repository: str) -> str:
    return repository.rstrip("/").lower()


@lru_cache(maxsize=64)
def _pack(chart: PublishedChart) -> bytes:
    """The same bytes for the same files."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(chart.files().items()):
            entry = tarfile.TarInfo(f"{chart.name}/{path}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
