"""Charts in HTTP repositories: index.yaml, versions, archives checked against their digests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

from homeport.helm.errors import SourceError
from homeport.helm.source.credential import Credential
from homeport.helm.source.reference import host_of
from homeport.helm.source.version import choose_version
from homeport.helm.source.wire import Reply, Wire, shown
from homeport.machinery import yaml

_LARGEST_INDEX: Final = 64 << 20
_LARGEST_PROVENANCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A version of a chart in the index: addresses of its archive, and the digest if the index has one."""

    version: str
    urls: tuple[str, ...]
    digest: str


class Repository:
    """One repository during one fetch. Credentials go to its own host only, unless `pass_credentials` is set."""

    def __init__(
        self, wire: Wire, address: str, credential: Credential | None = None, *, pass_credentials: bool = False
    ) -> None:
        self._wire = wire
        self._address = address.rstrip("/") + "/"
        self._credential = credential
        self._pass_credentials = pass_credentials

    async def find(self, chart: str, version: str) -> Entry:
        where = f"{shown(self._address)} chart {chart}"
        listed = (await self._index()).get(chart)
        if not isinstance(listed, list) or not listed:
            raise SourceError(f"{where} is not in the repository: check the name with `helm search repo`")
        entries: dict[str, dict[str, Any]] = {}
        for each in listed:
            if isinstance(each, dict) and each.get("version"):
                entries.setdefault(str(each["version"]), each)
        chosen = entries[choose_version(entries, version, where)]
        urls = tuple(urljoin(self._address, str(url)) for url in chosen.get("urls") or ())
        if not urls:
            raise SourceError(f"{where} version {chosen['version']}: the index has no address for it")
        return Entry(str(chosen["version"]), urls, _digest(str(chosen.get("digest") or "")))

    async def archive(self, entry: Entry) -> bytes:
        """From the first address that has it."""
        failed: SourceError | None = None
        for url in entry.urls:
            try:
                return (await self._get(url)).body
            except SourceError as error:
                failed = failed or error
        assert failed is not None
        raise failed

    async def provenance(self, entry: Entry) -> bytes | None:
        try:
            return (await self._get(f"{entry.urls[0]}.prov", _LARGEST_PROVENANCE)).body
        except SourceError as error:
            if error.transient:
                raise
            return None

    async def _index(self) -> dict[str, Any]:
        url = urljoin(self._address, "index.yaml")
        reply = await self._get(url, _LARGEST_INDEX)
        try:
            # Some have tens of megabytes: others go on meanwhile.
            found = await asyncio.to_thread(yaml.load, reply.body, shown(url))
        except yaml.YamlError as error:
            raise SourceError(f"{shown(url)} is not a chart index: {error}") from None
        entries = found.get("entries") if isinstance(found, dict) else None
        if not isinstance(entries, dict):
            raise SourceError(f"{shown(url)} is not a chart index: it has no entries; is this a chart repository?")
        return entries

    async def _get(self, url: str, limit: int | None = None) -> Reply:
        headers = self._headers(url)
        reply = await (self._wire.get(url, headers, limit) if limit else self._wire.get(url, headers))
        if reply.status == 200:
            return reply
        if reply.status in (401, 403):
            known = "the credentials were refused" if headers else "it needs credentials, and none were given"
            raise SourceError(f"{shown(url)}: {known} (HTTP {reply.status})")
        if reply.status == 404:
            raise SourceError(f"{shown(url)} does not exist (HTTP 404)")
        raise SourceError(f"{shown(url)}: the server answered HTTP {reply.status}", transient=reply.status >= 429)

    def _headers(self, url: str) -> dict[str, str]:
        own = host_of(url) == host_of(self._address)
        if self._credential is None or not (own or self._pass_credentials):
            return {}
        return {"Authorization": self._credential.basic}


def _digest(text: str) -> str:
    if not text:
        return ""
    return text if text.startswith("sha256:") else f"sha256:{text}"
