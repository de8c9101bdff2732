"""Charts by name and version: from a folder, a mirror, their own address, or, in simulation, the built-in stand-ins."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from homeport.addons.catalogue.standin import standin_chart
from homeport.addons.chart.credential import decoded
from homeport.addons.chart.version import is_exact
from homeport.addons.desired import DesiredChart
from homeport.addons.problem import Problem
from homeport.addons.source import read_secret
from homeport.api.addon.v1alpha1 import ChartSource as ChartAddress
from homeport.capi.chartsettings import ChartSettings
from homeport.client.protocol import Client
from homeport.helm.errors import SourceError
from homeport.helm.source.credential import parse_credentials
from homeport.helm.source.reference import ChartLocation
from homeport.helm.source.source import ChartSource
from homeport.helm.source.wire import Trust

Json = dict[str, Any]
Files = Mapping[str, bytes]
_CREDENTIALS = "spec.chart.credentialsRef"
_KEPT = 16  # charts in memory; a chart is a few megabytes at most
_RETRY_SECONDS = 15.0


class Shelf:
    def __init__(self, client: Client, settings: ChartSettings) -> None:
        self._client = client
        self._settings = settings
        self._kept: OrderedDict[tuple[str, ...], Files] = OrderedDict()

    async def fetch(self, wanted: DesiredChart, namespace: str) -> Files:
        """The files of the chart. Raises Problem."""
        if wanted.files is not None:
            return wanted.files
        secret = await self._secret(wanted.source, namespace)
        key = _key(wanted, secret)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        if wanted.entry is not None and self._settings.simulated and self._settings.folder is None:
            made: Files = standin_chart(wanted.entry, wanted.version)
        else:
            made = await self._fetched(wanted, secret)
        self._kept[key] = made
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return made

    async def _secret(self, address: ChartAddress, namespace: str) -> Json | None:
        if address.credentials_ref is None:
            return None
        return await read_secret(self._client, namespace, address.credentials_ref.name, _CREDENTIALS)

    async def _fetched(self, wanted: DesiredChart, secret: Json | None) -> Files:
        location = locate(wanted.source, wanted.version, self._settings)
        source = self._source(wanted, secret)
        try:
            fetched = await source.fetch(location)
        except SourceError as error:
            # A version that is not there yet may be published, or copied to the mirror, at any time.
            raise Problem("ChartNotAvailable", str(error), after=_RETRY_SECONDS, warning=True) from None
        if is_exact(wanted.version) and fetched.version.removeprefix("v") != wanted.version.removeprefix("v"):
            message = f"chart {location}: it has version {fetched.version}, and {wanted.version} is wanted"
            raise Problem("ChartNotAvailable", message, after=_RETRY_SECONDS, warning=True)
        return fetched.files

    def _source(self, wanted: DesiredChart, secret: Json | None) -> ChartSource:
        address = wanted.source
        outside = wanted.outside and not self._settings.mirror  # the mirror is the choice of whoever runs the plane
        trust = Trust(plain_http=address.insecure_http, dial=self._settings.dial, outside=outside)
        if secret is None:
            return ChartSource(trust=trust, cache=self._settings.cache)
        ca = decoded(secret).get("ca.crt", "")
        if ca:
            trust = replace(trust, ca=ca.encode())
        try:
            credentials = parse_credentials(secret)
        except SourceError as error:
            if ca:
                return ChartSource(trust=trust, cache=self._settings.cache)
            raise Problem("InvalidCredentials", f"{_CREDENTIALS}: {error}", warning=True) from None
        return ChartSource(credentials=credentials, trust=trust, cache=self._settings.cache)


def _key(wanted: DesiredChart, secret: Json | None) -> tuple[str, ...]:
    """A chart that was fetched with somebody's credentials, or without TLS, is nobody else's."""
    address, meta = wanted.source, (secret or {}).get("metadata") or {}
    trust = (
        str(wanted.outside),
        str(address.insecure_http),
        str(meta.get("uid", "")),
        str(meta.get("resourceVersion", "")),
    )
    return (address.repository, address.name, wanted.version, address.digest, *trust)


def locate(address: ChartAddress, version: str, settings: ChartSettings) -> ChartLocation:
    """Where a chart is fetched from on this plane. Pure."""
    name = address.name or address.repository.rstrip("/").rpartition("/")[2].partition(":")[0]
    if settings.folder is not None:
        return ChartLocation(path=str(settings.folder), chart=name, version=version, digest=address.digest)
    repository = settings.mirror or address.repository
    if repository.startswith("oci://"):
        whole = not settings.mirror and not address.name
        oci = repository if whole else f"{repository.rstrip('/')}/{name}"
        return ChartLocation(oci=oci, version=version, digest=address.digest)
    return ChartLocation(repository=repository, chart=name, version=version, digest=address.digest)
