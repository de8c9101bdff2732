"""ChartSource: fetches a chart from wherever it is, checked and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from homeport.helm.errors import SourceError
from homeport.helm.source.credential import NONE, Credentials
from homeport.helm.source.disk import Cache, digest_of, read_bytes, read_chart, unpacked
from homeport.helm.source.oci import Registry
from homeport.helm.source.provenance import Keyring
from homeport.helm.source.reference import ChartLocation, mirrored, parse_oci
from homeport.helm.source.repository import Repository
from homeport.helm.source.version import choose_version
from homeport.helm.source.wire import Trust, Wire
from homeport.machinery.chart import Chart, ChartError, load_chart

_KINDS: Final = "exactly one of oci, repository and path"


@dataclass(frozen=True, slots=True)
class FetchedChart:
    """A chart and where it came from. `digest` is that of its archive; empty for a folder."""

    files: Mapping[str, bytes] = field(repr=False)
    chart: Chart = field(repr=False)
    location: ChartLocation
    digest: str = ""
    signed_by: str = ""  # the fingerprint of the key that signed it, where a keyring was given
    archive: bytes | None = field(default=None, repr=False)  # None for a folder
    provenance: bytes | None = field(default=None, repr=False)  # fetched only where a keyring was given

    @property
    def version(self) -> str:
        return self.chart.version


@dataclass(frozen=True, slots=True)
class ChartSource:
    """How charts are fetched. Frozen and without connections: make one, and use it for any number of charts.

    `mirrors` maps address prefixes to others, paths on disk included. `keyring`: one of its keys must have signed.
    """

    credentials: Credentials = NONE
    trust: Trust = field(default_factory=Trust)
    mirrors: Mapping[str, str] = field(default_factory=dict)
    cache: Path | None = None
    keyring: Keyring | None = None
    pass_credentials: bool = False

    async def fetch(self, location: ChartLocation) -> FetchedChart:
        """Raises SourceError, which names the location and says what to do."""
        place = mirrored(location, self.mirrors)
        if sum(map(bool, (place.oci, place.repository, place.path))) != 1:
            raise SourceError(f"chart {location}: {_KINDS} must be set")
        if place.path:
            return await self._from_disk(place)
        if place.oci:
            return await self._from_registry(place)
        return await self._from_repository(place)

    async def _from_disk(self, place: ChartLocation) -> FetchedChart:
        files, archive, path = await read_chart(Path(place.path), place.chart, place.version)
        if archive is None:
            if place.digest or self.keyring is not None:
                raise SourceError(f"chart {place}: a folder has neither digest nor signature; package it")
            made = await asyncio.to_thread(self._made, files, place)
        else:
            provenance = await read_bytes(path.with_name(f"{path.name}.prov")) if self.keyring is not None else None
            made = await asyncio.to_thread(self._checked, archive, provenance, place, "", files)
        if place.version:
            choose_version([made.version], place.version, f"chart {place}")  # a path may hold another version
        return made

    async def _from_registry(self, place: ChartLocation) -> FetchedChart:
        reference = parse_oci(place.oci)
        async with Wire(self.trust) as wire:
            registry = Registry(wire, self.trust.scheme, reference, self.credentials)
            found = await registry.find(place.version)
            archive = await self._cached(found.archive.digest) or await registry.blob(found.archive)
            provenance = None
            if self.keyring is not None and found.provenance is not None:
                provenance = await registry.blob(found.provenance)
        checked = await asyncio.to_thread(self._checked, archive, provenance, place, found.archive.digest)
        return await self._kept(checked, archive)

    async def _from_repository(self, place: ChartLocation) -> FetchedChart:
        if not place.chart:
            raise SourceError(f"chart {place}: name the chart of the repository")
        host = place.repository.split("://", 1)[-1]
        credential = self.credentials.need(*host.partition("/")[::2])
        async with Wire(self.trust) as wire:
            repository = Repository(wire, place.repository, credential, pass_credentials=self.pass_credentials)
            found = await repository.find(place.chart, place.version)
            archive = await self._cached(found.digest) or await repository.archive(found)
            provenance = await repository.provenance(found) if self.keyring is not None else None
        checked = await asyncio.to_thread(self._checked, archive, provenance, place, found.digest)
        return await self._kept(checked, archive)

    async def _cached(self, digest: str) -> bytes | None:
        return await Cache(self.cache).get(digest) if self.cache is not None and digest else None

    async def _kept(self, fetched: FetchedChart, archive: bytes) -> FetchedChart:
        if self.cache is not None and await self._cached(fetched.digest) is None:
            await Cache(self.cache).put(archive)
        return fetched

    def _checked(
        self,
        archive: bytes,
        provenance: bytes | None,
        place: ChartLocation,
        expected: str,
        files: Mapping[str, bytes] | None = None,
    ) -> FetchedChart:
        digest = digest_of(archive)
        for wanted, who in ((expected, "the index"), (place.digest, "the request")):
            if wanted and wanted != digest:
                raise SourceError(
                    f"chart {place}: its archive has digest {digest}, but {who} names {wanted}: "
                    "it was changed after it was published; do not install it before you know why"
                )
        signed_by = ""
        if self.keyring is not None:
            if provenance is None:
                raise SourceError(f"chart {place}: a keyring is given, and the chart has no provenance file (.prov)")
            signed_by = self.keyring.verify(provenance, digest, str(place))
        made = self._made(files or unpacked(archive, f"chart {place}"), place)
        return replace(made, digest=digest, signed_by=signed_by, archive=archive, provenance=provenance)

    def _made(self, files: Mapping[str, bytes], place: ChartLocation) -> FetchedChart:
        try:
            return FetchedChart(files, load_chart(files), place)
        except ChartError as error:
            raise SourceError(f"chart {place}: {error}") from None
